/** What is written of a kernel: instructions with the nodes they came from, registers by class, labels, and first lines that occur once. */
import type { KNode } from '@polygrad/core/kernel';
import { PtxError } from './kernel.ts';

/** Registers: predicates, 16 and 32 bits, 64 bits, float32 and float64. */
export type RegisterClass = 'p' | 'h' | 'r' | 'rd' | 'f' | 'fd';

const types: Readonly<Record<RegisterClass, string>> = {
  p: '.pred',
  h: '.b16',
  r: '.b32',
  rd: '.b64',
  f: '.f32',
  fd: '.f64',
};

interface Line {
  readonly text: string;
  readonly node: KNode | null;
}

export class Writer {
  /** The compute capability named: what instructions there are. */
  readonly capability: number;
  /** The node that is being written. */
  node: KNode | null = null;
  readonly #first: Line[] = [];
  readonly #body: Line[] = [];
  readonly #once = new Map<string, string>();
  readonly #counts = new Map<RegisterClass, number>();
  #lines: Line[] = this.#body;
  #labels = 0;

  constructor(capability: number) {
    this.capability = capability;
  }

  /** A register that nothing has been written to. */
  fresh(kind: RegisterClass): string {
    const count = this.#counts.get(kind) ?? 0;
    this.#counts.set(kind, count + 1);
    return `%${kind}${count}`;
  }

  line(text: string): void {
    this.#lines.push({ text: `  ${text}`, node: this.node });
  }

  /** Writes one instruction; gives the register it writes to. */
  op(kind: RegisterClass, name: string, ...operands: readonly string[]): string {
    const to = this.fresh(kind);
    this.line(`${name} ${[to, ...operands].join(', ')};`);
    return to;
  }

  /**
   * Lets the last instructions write to other registers than those they wrote to, one each in order; false where they cannot. None of them may
   * read what an earlier one would now overwrite, and no other code may hold the old registers.
   */
  retarget(from: readonly string[], to: readonly string[]): boolean {
    const start = this.#lines.length - from.length;
    if (start < 0) return false;
    const last = this.#lines.slice(start);
    const words = last.map(({ text }) => text.slice(2, -1).split(/[ ,]+/));
    for (const [i, [, written]] of words.entries()) {
      if (written !== from[i]) return false;
      if (words.slice(i + 1).some((others) => others.includes(to[i]!, 2))) return false;
    }
    for (const [i, { text, node }] of last.entries())
      this.#lines[start + i] = { text: text.replace(`${from[i]},`, `${to[i]},`), node };
    return true;
  }

  label(): string {
    return `$L${this.#labels++}`;
  }

  place(label: string): void {
    this.#lines.push({ text: `${label}:`, node: this.node });
  }

  /** A register with something that all of the kernel may read, computed at its start, once. */
  once(title: string, compute: () => string): string {
    const known = this.#once.get(title);
    if (known !== undefined) return known;
    const before = this.#lines;
    this.#lines = this.#first;
    const register = compute();
    this.#lines = before;
    this.#once.set(title, register);
    return register;
  }

  refuse(what: string): never {
    throw new PtxError(what, this.node);
  }

  /** Declarations of all registers, the first lines, the others. */
  finish(): readonly Line[] {
    const declared = [...this.#counts].map(([kind, count]) => ({
      text: `  .reg ${types[kind]} %${kind}<${count}>;`,
      node: null,
    }));
    return [...declared, ...this.#first, ...this.#body];
  }
}
