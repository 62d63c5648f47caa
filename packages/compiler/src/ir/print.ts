/**
 * Readable text of programs and loop nests, for error messages, snapshots and people.
 *
 * Nodes are numbered %0, %1 ... in order of appearance, so the text of equal kernels is equal.
 */
import type { KNode, LoopKernel, Program, Transform } from './ir.ts';
import { sourcesFirst } from './node.ts';

type Names = Map<KNode, string>;

function typeOf(n: KNode): string {
  return n.lanes === 1 ? n.dtype : `${n.dtype}x${n.lanes}`;
}

function argText(n: KNode): string {
  switch (n.op) {
    case 'PARAM':
      return `slot ${n.arg.slot} ${n.arg.access} [${n.arg.length}]`;
    case 'SCALAR':
      return n.arg.low === undefined ? `slot ${n.arg.slot}` : `slot ${n.arg.slot} ${n.arg.low}..${n.arg.high}`;
    case 'SHARED':
    case 'REG':
      return `${n.arg.name}[${n.arg.length}]`;
    case 'CONST':
      return Object.is(n.arg.value, -0) ? '-0' : String(n.arg.value);
    case 'SPECIAL':
      return `${n.arg.kind}.${n.arg.axis}`;
    case 'RANGE':
      return `${n.arg.extent} ${n.arg.kind}`;
    case 'REDUCE':
    case 'ATOMIC':
    case 'SUBGROUP':
      return n.arg.op;
    case 'MATRIX':
      return n.arg.tile;
    case 'FRAGMENT':
      return `${n.arg.part} ${n.arg.tile} ${n.arg.across} ${n.arg.along}`;
    case 'COPY':
      return String(n.arg.lanes);
    case 'WAIT':
      return String(n.arg.pending);
    case 'STAGE':
      return n.arg.space;
    case 'LANE':
      return String(n.arg.lane);
    case 'LOAD':
      return n.arg === null ? '' : `step ${n.arg.step}`;
    case 'BARRIER':
      return n.arg === null ? '' : String(n.arg.part);
    default:
      return '';
  }
}

/** A node as text; sources without a name are '?'. */
export function printLine(n: KNode, names: ReadonlyMap<KNode, string>): string {
  const parts = [n.op, argText(n), n.src.map((s) => names.get(s) ?? '?').join(' ')].filter((s) => s !== '');
  return n.dtype === 'void' ? parts.join(' ') : `${names.get(n)}: ${typeOf(n)} = ${parts.join(' ')}`;
}

function nameOf(n: KNode, names: Names): void {
  if (n.dtype !== 'void' && !names.has(n)) names.set(n, `%${names.size}`);
}

/**
 * The program as text, one node a line.
 *
 * @example
 * const { program } = randomProgram(1);
 * console.log(printProgram(program));
 */
export function printProgram(p: Program): string {
  const lines = [`program ${p.name} grid ${p.grid.join('x')} group ${p.group.join('x')}`];
  const names: Names = new Map();
  let indent = '  ';
  for (const n of p.body) {
    if (n.op === 'ENDLOOP' || n.op === 'ENDIF') indent = indent.slice(2);
    nameOf(n, names);
    lines.push(indent + printLine(n, names));
    if (n.op === 'LOOP' || n.op === 'IF') indent += '  ';
  }
  return lines.join('\n');
}

/** Adds the lines of everything `root` needs and has not been written, sources first. */
function writeValue(root: KNode, names: Names, lines: string[]): void {
  sourcesFirst(
    root,
    (n) => names.has(n),
    (n) => [...n.src].reverse(),
    (n) => {
      nameOf(n, names);
      lines.push(`  ${printLine(n, names)}`);
    },
  );
}

/**
 * The loop nest as text: values in order of need, then each store with its loops.
 *
 * @example
 * const e = new Exprs();
 * const x = e.param(0, 'float32', 'read', 2);
 * const y = e.param(1, 'float32', 'write', 2);
 * const i = e.range(2);
 * const store = e.store(y, i, e.mul(e.load(x, i), 2));
 * const kernel: LoopKernel = { name: 'twice', params: [x, y], scalars: [], stores: [{ store, ranges: [i] }] };
 * console.log(printLoopKernel(kernel));
 */
export function printLoopKernel(k: LoopKernel): string {
  const lines = [`kernel ${k.name}`];
  const names: Names = new Map();
  for (const { store, ranges } of k.stores) {
    for (const r of ranges) writeValue(r, names, lines);
    for (const s of store.src) writeValue(s, names, lines);
    lines.push(
      `  for ${ranges.map((r) => `${names.get(r)} in ${r.arg.extent} ${r.arg.kind}`).join(', ') || 'once'}: ${printLine(store, names)}`,
    );
  }
  return lines.join('\n');
}

/**
 * What was done to the loops of a kernel, step by step: `split i0 64 grid vector` is followed by steps for `i0.0` and `i0.1`.
 *
 * @example
 * const split = { name: 'split', loops: [7], made: [8, 9], args: [64, 'grid', 'vector'] };
 * printTransforms([split, { name: 'unroll', loops: [9], made: [], args: [] }]); // ['split i0 64 grid vector', 'unroll i0.1']
 */
export function printTransforms(steps: readonly Transform[]): string[] {
  const names = new Map<number, string>();
  let fresh = 0;
  return steps.map(({ name, loops, made, args }) => {
    const known = loops.map((id) => {
      const own = names.get(id) ?? `i${fresh++}`;
      names.set(id, own);
      return own;
    });
    for (const [i, id] of made.entries()) names.set(id, made.length > 1 ? `${known[0]}.${i}` : known[0]!);
    return [name, ...known, ...args].join(' ');
  });
}

/**
 * One expression as text, for messages.
 *
 * @example
 * const e = new Exprs();
 * console.log(printNode(e.i32(1))); //=>   %0: int32 = CONST 1
 */
export function printNode(n: KNode): string {
  const lines: string[] = [];
  const names: Names = new Map();
  for (const s of n.src) writeValue(s, names, lines);
  nameOf(n, names);
  lines.push(`  ${printLine(n, names)}`);
  return lines.join('\n');
}
