/**
 * Random programs of groups of threads, by seed: blocks that only some groups enter, loops and blocks of some threads, with exchanges
 * through group memory in between. Every thread counts in its own cell what it does, so a step too many shows as much as one too few.
 */
import { type KNode, type KNodeOf, ProgramBuilder } from '@polygrad/core/kernel';
import type { ProgramCase } from './program-case.ts';
import { numbers } from './random-program.ts';

const groups = 4;
const threads = 16;

class Generator {
  readonly #b = new ProgramBuilder();
  readonly #random: (n: number) => number;
  readonly #group: KNode;
  readonly #local: KNode;
  readonly #cell: KNode;
  readonly #cells: KNodeOf<'PARAM'>;
  readonly #shared: KNodeOf<'SHARED'>;
  readonly #own: KNodeOf<'REG'>;

  constructor(seed: number) {
    this.#random = numbers(seed);
    const { e } = this.#b;
    this.#group = e.special('group', 0, groups);
    this.#local = e.special('local', 0, threads);
    this.#cell = e.add(e.mul(this.#group, threads), this.#local);
    this.#cells = e.param(0, 'int32', 'readwrite', groups * threads);
    this.#shared = this.#b.shared('row', 'int32', threads);
    this.#own = this.#b.reg('own', 'int32');
  }

  /** Parts one after another, most of them for some groups only: the form of kernels that run side by side as one. */
  #parts(): void {
    const count = 2 + this.#random(3);
    for (let i = 0; i < count; i++) {
      if (this.#random(4) === 0) this.#part();
      else this.#b.ifThen(this.#some(this.#group, groups), () => this.#part());
    }
  }

  /** A number of every thread's own is made and counted, by all threads or some. */
  #part(): void {
    const { e } = this.#b;
    this.#b.store(this.#own, 0, e.add(this.#local, this.#random(9)));
    this.#block(1, false);
    const write = (): void =>
      this.#b.store(this.#cells, this.#cell, this.#mixed(this.#b.load(this.#cells, this.#cell), this.#now()));
    if (this.#random(4) === 0) write();
    else this.#b.ifThen(this.#some(this.#local, threads), write);
  }

  /** Statements; `apart` if threads of one group may diverge. */
  #block(depth: number, apart: boolean): void {
    const count = 1 + this.#random(3);
    for (let i = 0; i < count; i++) {
      const what = this.#random(depth < 3 ? 8 : 3);
      if (what === 0) this.#mix(this.#b.e.i32(this.#random(9)));
      else if (what < 3) this.#exchange(apart);
      else if (what < 5) this.#b.ifThen(this.#some(this.#local, threads), () => this.#block(depth + 1, true));
      else if (what < 6) this.#b.loop(this.#times(), () => this.#block(depth + 1, true));
      else this.#b.loop(2 + this.#random(2), () => this.#block(depth + 1, apart));
    }
  }

  /** A condition that holds for some of the places. */
  #some(place: KNode, extent: number): KNode {
    const { e } = this.#b;
    const [a, b] = [this.#random(extent - 1) + 1, this.#random(extent)];
    switch (this.#random(4)) {
      case 0:
        return e.lt(place, a);
      case 1:
        return e.lt(a - 1, place);
      case 2:
        return e.eq(place, b);
      default:
        return e.and(e.lt(0, place), e.lt(place, a + 1));
    }
  }

  /** Other numbers for other groups or threads, and 0 for some. */
  #times(): KNode {
    return this.#b.e.irem(this.#random(2) === 0 ? this.#group : this.#local, 3);
  }

  #now(): KNode {
    return this.#b.load(this.#own, 0);
  }

  #mixed(a: KNode, b: KNode): KNode {
    const { e } = this.#b;
    return e.and(e.add(e.mul(a, 5), e.add(b, 1)), 0xffff);
  }

  #mix(value: KNode): void {
    this.#b.store(this.#own, 0, this.#mixed(this.#now(), value));
  }

  #exchange(apart: boolean): void {
    const { e } = this.#b;
    if (apart) {
      this.#mix(e.add(this.#local, this.#random(9)));
      return;
    }
    this.#b.barrier();
    this.#b.store(this.#shared, this.#local, this.#now());
    this.#b.barrier();
    this.#mix(this.#b.load(this.#shared, e.irem(e.add(this.#local, 1 + this.#random(threads - 1)), threads)));
  }

  case(name: string): ProgramCase {
    this.#parts();
    const program = this.#b.build({
      name: 'groups',
      grid: [groups, 1, 1],
      group: [threads, 1, 1],
      params: [this.#cells],
    });
    return { name, program, data: [Int32Array.from({ length: groups * threads }, (_, i) => i * 7)], scalars: [] };
  }
}

/**
 * The random program of a seed, for engines with groups of threads.
 *
 * @example
 * randomGroups(1).program.group; // [16, 1, 1]
 */
export function randomGroups(seed: number): ProgramCase {
  return new Generator(seed).case(`groups of seed ${seed}`);
}
