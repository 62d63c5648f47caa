/**
 * The meaning of a loop nest in float64, fast enough for tests over many shapes: the nest is written out as JavaScript.
 *
 * For tests only. Knows the operations contractions are made of; numbers are never rounded, so kernels of float64 are exact
 * up to the order of the sum.
 */
import { ownRanges, type Range } from '../kernel/free-ranges.ts';
import type { KNode, LoopKernel } from '../kernel/ir.ts';
import type { TypedArray } from '../shape/dtype.ts';

/** Runs the kernel on host arrays, one per slot. All stores see the memory as it was before. */
export function evaluateExactly(kernel: LoopKernel, buffers: readonly TypedArray[]): void {
  const lines: string[] = [];
  for (const { store, ranges } of kernel.stores) {
    const [memory, index, value, gate] = store.src as readonly [KNode, KNode, KNode, KNode?];
    const scope = new Writer(lines, null);
    for (const r of ranges) scope.open(r);
    const [at, v, g] = [scope.value(index), scope.value(value), gate === undefined ? '1' : scope.value(gate)];
    lines.push(
      `if (${g}) to[${memory.op === 'PARAM' ? memory.arg.slot : -1}][${at}] = ${v};`,
      '}'.repeat(ranges.length),
    );
  }
  const before = buffers.map((b) => b.slice());
  new Function('from', 'to', lines.join('\n'))(before, buffers);
}

/** Writes expressions as statements; a sum opens a scope of its own. */
class Writer {
  static #names = 0;
  readonly #lines: string[];
  readonly #parent: Writer | null;
  readonly #known = new Map<KNode, string>();

  constructor(lines: string[], parent: Writer | null) {
    this.#lines = lines;
    this.#parent = parent;
  }

  open(r: Range): void {
    const name = `r${r.arg.id}`;
    this.#lines.push(`for (let ${name} = 0; ${name} < ${r.arg.extent}; ${name}++) {`);
    this.#known.set(r, name);
  }

  value(n: KNode): string {
    const known = this.#find(n);
    if (known !== null) return known;
    const name = `v${Writer.#names++}`;
    if (n.op === 'REDUCE') {
      const own = ownRanges(n);
      this.#lines.push(`let ${name} = 0;`);
      const inner = new Writer(this.#lines, this);
      for (const r of own) inner.open(r);
      this.#lines.push(`${name} += ${inner.value(n.src[0] as KNode)};`, '}'.repeat(own.length));
    } else {
      const text = this.#text(n);
      this.#lines.push(`const ${name} = ${text};`);
    }
    this.#known.set(n, name);
    return name;
  }

  #find(n: KNode): string | null {
    if (n.op === 'CONST') return `(${Number(n.arg.value)})`;
    for (let w: Writer | null = this; w !== null; w = w.#parent) {
      const name = w.#known.get(n);
      if (name !== undefined) return name;
    }
    return null;
  }

  #text(n: KNode): string {
    if (n.op === 'LOAD') {
      const [memory, ...rest] = n.src as readonly [KNode, ...KNode[]];
      const [at, gate, alt] = rest.map((s) => this.value(s)) as [string, string?, string?];
      const read = `from[${memory.op === 'PARAM' ? memory.arg.slot : -1}][${at}]`;
      return gate === undefined ? read : `${gate} ? ${read} : ${alt}`;
    }
    const [a, b, c] = n.src.map((s) => this.value(s)) as [string, string, string];
    switch (n.op) {
      case 'ADD':
        return `${a} + ${b}`;
      case 'SUB':
        return `${a} - ${b}`;
      case 'MUL':
        return `${a} * ${b}`;
      case 'NEG':
        return `-${a}`;
      case 'IDIV':
        return `Math.trunc(${a} / ${b})`;
      case 'IREM':
        return `${a} % ${b}`;
      case 'MAX':
        return `Math.max(${a}, ${b})`;
      case 'MIN':
        return `Math.min(${a}, ${b})`;
      case 'LT':
        return `Number(${a} < ${b})`;
      case 'LE':
        return `Number(${a} <= ${b})`;
      case 'EQ':
        return `Number(${a} === ${b})`;
      case 'AND':
        return `${a} & ${b}`;
      case 'OR':
        return `${a} | ${b}`;
      case 'NOT':
        return `1 - ${a}`;
      case 'WHERE':
        return `${a} ? ${b} : ${c}`;
      case 'CAST':
        return n.dtype === 'float32' ? `Math.fround(${a})` : a;
      default:
        throw new Error(`[test] no meaning for ${n.op}`);
    }
  }
}
