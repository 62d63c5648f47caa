/** The memories of a program and what they are called: tensors and group memory, and registers as variables. */
import type { KNode, KNodeOf, Program } from '@polygrad/core/kernel';
import { identifier } from '@polygrad/core/kernel/emitters';
import type { Memory } from './dialect.ts';
import { cellName, memoryNames } from './names.ts';
import { partLanes } from './parts.ts';

export class Memories {
  readonly shared: readonly Memory[];
  readonly #widths: readonly number[];
  readonly #memories = new Map<KNode, Memory>();
  readonly #registers = new Map<KNode, string>();

  constructor(program: Program, params: ReadonlyMap<number, string>, widths: readonly number[]) {
    this.#widths = widths;
    const titles = memoryNames(program, params);
    const atomic = new Set(program.body.flatMap((n) => (n.op === 'ATOMIC' ? [titles(n.src[0])] : [])));
    const shared: Memory[] = [];
    for (const n of program.body) {
      if (n.op !== 'PARAM' && n.op !== 'SHARED') continue;
      const memory = { node: n, name: titles(n), atomic: atomic.has(titles(n)) };
      this.#memories.set(n, memory);
      if (n.op === 'SHARED') shared.push(memory);
    }
    this.shared = shared;
  }

  find(mem: KNode): Memory | undefined {
    return this.#memories.get(mem);
  }

  /** Gives a register a name; the variables it is made of, with their lanes. */
  register(n: KNodeOf<'REG'>, fresh: (prefix: string) => string): { variable: string; lanes: number }[] {
    this.#registers.set(n, fresh(`${identifier(n.arg.name)}_`));
    const parts = partLanes(n.lanes, this.#widths);
    return Array.from({ length: n.arg.length }, (_, cell) =>
      this.cells(n, cell).map((variable, i) => ({ variable, lanes: parts[i]! })),
    ).flat();
  }

  /** The variables of one element of a register. */
  cells(mem: KNode, cell: number): readonly string[] {
    const title = this.#registers.get(mem) as string;
    const parts = partLanes(mem.lanes, this.#widths);
    return parts.map((_, part) => cellName(title, cell, part, parts.length));
  }
}
