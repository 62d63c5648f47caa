/**
 * Collects programs written with the builder that together are one kernel of a plan, and the temporaries between them.
 *
 * Groups have one thread: on every engine, SIMT or not, such a program means the same.
 */
import type { EngineCaps } from '../engine/engine.ts';
import { ProgramBuilder } from '../kernel/builder.ts';
import { costOf } from '../kernel/cost.ts';
import { Exprs } from '../kernel/expr.ts';
import type { KNode, KNodeOf } from '../kernel/ir.ts';
import { type DType, dtypeInfo } from '../shape/dtype.ts';
import type { Lowered, LoweredDispatch } from './contract.ts';

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
  /** Index of the running group. */
  readonly group: KNode;
  /** Memory that the kernel is given: `slot` counts the kernel's own parameters. */
  param(slot: number, dtype: DType, access: Access, length: number): KNode;
  temp(temp: Temp, access: Access): KNode;
}

export class ProgramSet {
  readonly #name: string;
  readonly #caps: EngineCaps;
  readonly #temps: number[] = [];
  readonly #dispatches: LoweredDispatch[] = [];

  constructor(name: string, caps: EngineCaps) {
    this.#name = name;
    this.#caps = caps;
  }

  temp(dtype: DType, length: number): Temp {
    const bytes = this.#caps.storageBytes?.[dtype] ?? dtypeInfo[dtype].bytes;
    return { at: this.#temps.push(length * bytes) - 1, dtype, length };
  }

  /** Adds a program of `groups` groups. */
  add(suffix: string, groups: number, write: (w: ProgramWriter) => void): void {
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
    write({
      b,
      e,
      group: e.special('group', 0, groups),
      param: (slot, dtype, access, length) => bound({ param: slot }, dtype, access, length),
      temp: ({ at, dtype, length }, access) => bound({ temp: at }, dtype, access, length),
    });
    const program = b.build({ name: `${this.#name}${suffix}`, params, scalars: [], grid: [groups, 1, 1] });
    this.#dispatches.push({ program: { ...program, cost: costOf(program.body, new Map()) }, bindings });
  }

  result(): Lowered {
    return { dispatches: this.#dispatches, temps: this.#temps };
  }
}
