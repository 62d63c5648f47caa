/**
 * The graph of a Value as a drawing: text for Graphviz (DOT), and SVG.
 *
 * The layout is the simplest layered one: a Value stands one column right of its parents. Columns are ordered by where the parents stand (the
 * barycenter method of Sugiyama, Tagawa and Toda, 1981).
 */
import type { Value } from './value.ts';

const short = (x: number): string => String(Number(x.toPrecision(4)));

const textOf = (v: Value): string =>
  [v.label, v.op, `data ${short(v.data)}`, `grad ${short(v.grad)}`].filter(Boolean).join(' | ');

/**
 * The graph as text of the DOT language.
 *
 * @example
 * const a = new Value(2);
 * a.label = 'a';
 * toDot(a.mul(3)).includes('label="a | data 2 | grad 0"'); // true
 */
export function toDot(result: Value): string {
  const values = result.history();
  const number = new Map(values.map((v, i) => [v, i]));
  const nodes = values.map((v, i) => `  n${i} [label="${textOf(v).replace(/[\\"]/g, '\\$&')}"];`);
  const edges = values.flatMap((v, i) => v.parents.map((p) => `  n${number.get(p)} -> n${i};`));
  return ['digraph {', '  rankdir=LR; node [shape=box];', ...nodes, ...edges, '}'].join('\n');
}

const [width, height, apartX, apartY] = [190, 30, 60, 16];

/**
 * The graph as an SVG picture, from the leaves on the left to the result on the right.
 *
 * @example
 * const a = new Value(2);
 * toSvg(a.mul(a)).startsWith('<svg'); // true
 */
export function toSvg(result: Value): string {
  const values = result.history();
  const column = new Map<Value, number>();
  const row = new Map<Value, number>();
  const columns: Value[][] = [];
  for (const v of values) {
    const at = Math.max(-1, ...v.parents.map((p) => column.get(p)!)) + 1;
    column.set(v, at);
    columns[at] ??= [];
    columns[at].push(v);
  }
  for (const list of columns) {
    const center = (v: Value): number =>
      v.parents.length === 0 ? 0 : v.parents.reduce((total, p) => total + row.get(p)!, 0) / v.parents.length;
    list.sort((a, b) => center(a) - center(b));
    for (const [i, v] of list.entries()) row.set(v, i);
  }
  const x = (v: Value): number => 10 + column.get(v)! * (width + apartX);
  const y = (v: Value): number => 10 + row.get(v)! * (height + apartY);
  const safe = (text: string): string => text.replace(/[<>&"]/g, (c) => `&#${c.charCodeAt(0)};`);
  const lines = values.flatMap((v) =>
    v.parents.map((p) => {
      const [x1, y1, x2, y2] = [x(p) + width, y(p) + height / 2, x(v), y(v) + height / 2];
      const middle = (x1 + x2) / 2;
      return `<path d="M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}" fill="none" stroke="#888"/>`;
    }),
  );
  const boxes = values.map(
    (v) =>
      `<rect x="${x(v)}" y="${y(v)}" width="${width}" height="${height}" fill="#fff" stroke="#333"/>` +
      `<text x="${x(v) + width / 2}" y="${y(v) + height / 2 + 4}" font-size="11" text-anchor="middle">${safe(textOf(v))}</text>`,
  );
  const most = Math.max(...columns.map((list) => list.length));
  const [w, h] = [columns.length * (width + apartX), 20 + most * (height + apartY)];
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" font-family="monospace">${[...lines, ...boxes].join('')}</svg>`;
}
