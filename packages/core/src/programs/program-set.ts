/**
 * Collects programs written with the builder that together are one kernel of a plan, and the temporaries between them.
 *
 * Most are written for one thread, which does one of `count` units: a group on CPUs; SIMT engines take many units to a group. Others
 * are written for groups of threads that work together.
 */
import type { CodegenCaps, Lowered, LoweredDispatch } from '../codegen/lowering.ts';
import { ProgramBuilder } from '../ir/builder/builder.ts';
import { costOf, programOf } from '../ir/program.ts';
import { Exprs } from '../ir/expr.ts';
import { assumeBounds } from '../ir/node.ts';
import type { KNode, KNodeOf } from '../ir/ir.ts';
import { gridLimit } from '../codegen/linearize/linearize.ts';
import { type DType, dtypeInfo } from '../shape/dtype.ts';

/** Threads of a group of a SIMT engine where each works alone. */
const aloneThreads = 64;

type Access = 'read' | 'write' | 'readwrite';

/** A temporary: its place among the temporaries, and what it holds. */
export interface Temp {
  readonly at: number;
  readonly dtype: DType;
  readonly length: number;
}

/** One program while it is written. */
export interface ProgramWriter {
  readonly b: ProgramBuilder;
  readonly e: Exprs;
  /** Index of the unit that a thread does, or of the running group where threads work together. */
  readonly group: KNode;
  /** Memory that the kernel is given: `slot` counts the kernel's own parameters. */
  param(slot: number, dtype: DType, access: Access, length: number): KNode;
  temp(temp: Temp, access: Access): KNode;
  /** Places a condition or a count that depends on data, and says for the estimate what it is on average. */
  typical(value: KNode, average: number): KNode;
}

export class ProgramSet {
  readonly #name: string;
  readonly #caps: CodegenCaps;
  readonly #temps: number[] = [];
  readonly #dispatches: LoweredDispatch[] = [];

  constructor(name: string, caps: CodegenCaps) {
    this.#name = name;
    this.#caps = caps;
  }

  temp(dtype: DType, length: number): Temp {
    const bytes = this.#caps.storageBytes?.[dtype] ?? dtypeInfo[dtype].bytes;
    return { at: this.#temps.push(length * bytes) - 1, dtype, length };
  }

  /** Adds a program that does `count` units, each by one thread. It must not use group memory on SIMT engines. */
  add(suffix: string, count: number, write: (w: ProgramWriter) => void): void {
    const { simt, maxGroup } = this.#caps;
    const threads = simt ? Math.min(aloneThreads, maxGroup) : 1;
    this.#write(suffix, Math.ceil(count / threads), threads, (w, group) => {
      const { b, e } = w;
      if (threads === 1) return write({ ...w, group });
      const unit = e.add(e.mul(group, threads), e.special('local', 0, threads));
      const inside = count % threads === 0 ? e.bool(true) : e.lt(unit, count);
      assumeBounds(unit, 0, Math.max(0, count - 1));
      b.ifThen(inside, () => write({ ...w, group: unit }));
    });
  }

  /** Adds a program of `groups` groups of `threads` threads, a power of two. `thread`: number of the thread in its group. */
  addGroups(suffix: string, groups: number, threads: number, write: (w: ProgramWriter, thread: KNode) => void): void {
    this.#write(suffix, groups, threads, (w, group) => write({ ...w, group }, w.e.special('local', 0, threads)));
  }

  #write(
    suffix: string,
    groups: number,
    threads: number,
    write: (w: Omit<ProgramWriter, 'group'>, group: KNode) => void,
  ): void {
    const e = new Exprs();
    const b = new ProgramBuilder(e);
    const params: KNodeOf<'PARAM'>[] = [];
    const bindings: LoweredDispatch['bindings'][number][] = [];
    const bound = (
      binding: LoweredDispatch['bindings'][number],
      dtype: DType,
      access: Access,
      length: number,
    ): KNode => {
      const param = e.param(params.length, dtype, access, length);
      params.push(param);
      bindings.push(binding);
      return param;
    };
    const averages = new Map<KNode, number>();
    const w: Omit<ProgramWriter, 'group'> = {
      b,
      e,
      param: (slot, dtype, access, length) => bound({ param: slot }, dtype, access, length),
      temp: ({ at, dtype, length }, access) => bound({ temp: at }, dtype, access, length),
      typical: (value, average) => {
        const placed = b.place(value);
        averages.set(placed, average);
        return placed;
      },
    };
    const columns = this.#caps.simt ? Math.min(groups, gridLimit) : groups;
    const rows = columns === 0 ? 1 : Math.ceil(groups / columns);
    const column = e.special('group', 0, columns);
    const group = rows === 1 ? column : e.add(e.mul(e.special('group', 1, rows), columns), column);
    if (columns * rows === groups) write(w, group);
    else {
      const inside = e.lt(group, groups);
      assumeBounds(group, 0, groups - 1);
      b.ifThen(inside, () => write(w, group));
    }
    const program = b.build({
      name: `${this.#name}${suffix}`,
      params,
      scalars: [],
      grid: [columns, rows, 1],
      group: [threads, 1, 1],
    });
    this.#dispatches.push({
      program: programOf({ ...program, cost: costOf(program.body, averages, threads) }),
      bindings,
    });
  }

  result(): Lowered {
    return { dispatches: this.#dispatches, temps: this.#temps };
  }
}
