/**
 * Sums of products whose factors are staged in group memory: the code in place of the loops of the sum.
 *
 * A stage is some steps of the sum. Several stages are on their way at a time (software pipelining): by asynchronous copies
 * where memory has the panel's layout (COPY), otherwise through registers, loaded before a stage is multiplied and stored after
 * it. There is one barrier per stage. How threads multiply panels: matrix.ts, by matrix instructions; products.ts, by single numbers.
 */
import type { DType } from '../../shape/dtype.ts';
import type { KNode, KNodeOf } from '../../ir/ir.ts';
import type { Range } from '../../ir/free-ranges.ts';
import { assumeBounds, nodesOf } from '../../ir/node.ts';
import { dtypeInfo } from '../../shape/dtype.ts';
import type { Inside } from './linearize.ts';
import { Nest } from './nest.ts';
import type { Values } from './scope.ts';

/** The part of a factor that a group needs for one stage. Its lines are rows or columns of the factor, along the sum or across it. */
export interface Panel {
  /** An element, in terms of the ranges below; zero outside. */
  readonly value: KNode;
  /** Whether the elements of a unit are in range. Null: always. */
  readonly inside: KNode | null;
  readonly step: Range;
  readonly line: Range;
  /** Units of a line, and the elements of a unit, which are adjacent in memory; null for one element. */
  readonly unit: Range;
  readonly lane: Range | null;
  /** True if lines are elements of the side; else they are steps of the sum. */
  readonly alongSum: boolean;
  /** True if units are 4, 8 or 16 bytes that memory holds unchanged. */
  readonly copied: boolean;
}

/** A panel in group memory: the pitch of its lines, and the size of one stage. */
export interface PanelMemory {
  readonly memory: KNodeOf<'SHARED'>;
  readonly pitch: number;
  readonly length: number;
  readonly alongSum: boolean;
}

/** The multiplication by the threads of a group. */
export interface Multiplying {
  /** Adds the products of the stage in a slot. */
  add(slot: KNode): void;
  /** The thread's results, in the order of the copies of `inTile`. */
  results(): readonly KNode[];
}

/** A nest with staged factors. */
export interface StagedNest {
  readonly dtype: DType;
  /** Steps of the sum per stage, the number of stages, and how many are in group memory at a time. */
  readonly depth: number;
  readonly steps: KNode;
  readonly stages: number;
  readonly rows: Panel;
  readonly columns: Panel;
  /** The range of the sum, which identifies its REDUCE among the stores. */
  readonly sum: Range;
  readonly local: Range;
  /** A thread's results of the block; only the last range may be of kind 'vector'. */
  readonly inTile: readonly Range[];
  /** Begins the sums of a thread. */
  multiply(values: Values, panels: readonly [PanelMemory, PanelMemory], thread: KNode): Multiplying;
}

/** Lines are 16 bytes longer, so that threads which read a column of the panel use different banks. */
function pitchOf({ unit, lane }: Panel, dtype: DType): number {
  return unit.arg.extent * (lane?.arg.extent ?? 1) + 16 / dtypeInfo[dtype].bytes;
}

/** Writes a nest in stages. */
export function inStages(nest: StagedNest): Inside {
  const { rows, columns, steps } = nest;
  const always = (panel: Panel): readonly KNode[] => (panel.inside === null ? [] : [panel.inside]);
  return {
    values: [steps, rows.value, columns.value, ...always(rows), ...always(columns)],
    write: (values, options, stores, lowered) => {
      const [count, x, y, ...inside] = lowered as [KNode, KNode, KNode, ...KNode[]];
      const panels = [
        { ...rows, value: x, inside: rows.inside === null ? null : inside.shift()! },
        { ...columns, value: y, inside: columns.inside === null ? null : inside.shift()! },
      ] as const;
      const { scope, b } = values;
      const thread = b.e.special('local', 0, options.threads);
      scope.withLoop(nest.local, thread, () => {
        const results = new Stages(values, nest, panels, thread, options.threads).run(values.lower(count));
        const open = ([r, ...rest]: readonly Range[]): void => {
          if (r === undefined) {
            const found = [...nodesOf(stores.map((s) => s.store))].find(
              (n) => n.op === 'REDUCE' && n.src.includes(nest.sum),
            )!;
            values.results.set(found, { kind: 'values', tiles: [...scope.tiles], values: results });
            new Nest(values, options).writeStores(stores);
            return;
          }
          const [count, lanes] = r.arg.kind === 'vector' ? [1, r.arg.extent] : [r.arg.extent, 1];
          scope.withTile(r, { base: b.e.i32(0), count, lanes }, () => open(rest));
        };
        open(nest.inTile);
      });
    },
  };
}

class Stages {
  readonly #values: Values;
  readonly #nest: StagedNest;
  readonly #panels: readonly [Panel, Panel];
  readonly #memory: readonly [PanelMemory, PanelMemory];
  readonly #thread: KNode;
  readonly #threads: number;

  constructor(values: Values, nest: StagedNest, panels: readonly [Panel, Panel], thread: KNode, threads: number) {
    this.#values = values;
    this.#nest = nest;
    this.#panels = panels;
    this.#thread = thread;
    this.#threads = threads;
    const place = (p: Panel, name: string): PanelMemory => {
      const pitch = pitchOf(p, nest.dtype);
      const length = p.line.arg.extent * pitch;
      const memory = values.b.shared(name, nest.dtype, nest.stages * length);
      return { memory, pitch, length, alongSum: p.alongSum };
    };
    this.#memory = [place(panels[0], 'rows'), place(panels[1], 'columns')];
  }

  run(steps: KNode): readonly KNode[] {
    const { b } = this.#values;
    const { e } = b;
    const { stages } = this.#nest;
    const copies = this.#panels.some((p) => p.copied);
    const products = this.#nest.multiply(this.#values, this.#memory, this.#thread);
    /** Starts loading a stage; the returned function stores what went through registers. */
    const bring = (at: KNode, slot: KNode): (() => void) => {
      const last = e.min(at, e.sub(steps, 1));
      const store = this.#panels.map((p, i) => (p.copied ? () => {} : this.#load(p, i, last, slot)));
      if (copies) {
        b.ifThen(e.lt(at, steps), () => {
          for (const [i, p] of this.#panels.entries()) if (p.copied) this.#copy(p, i, at, slot);
        });
        b.here('COMMIT', 'void', 1, [], null);
      }
      return () => {
        for (const s of store) s();
      };
    };
    for (let i = 0; i < stages - 1; i++) bring(e.i32(i), e.i32(i))();
    // The slot of the current stage: counted, because a division in every iteration costs more.
    const place = b.reg('stage', 'int32');
    b.store(place, 0, e.i32(0));
    b.loop(steps, (at) => {
      if (copies) b.here('WAIT', 'void', 1, [], { pending: stages - 2 });
      b.barrier();
      const slot = b.load(place, 0);
      assumeBounds(slot, 0, stages - 1);
      const before = e.where(e.eq(slot, 0), e.i32(stages - 1), e.sub(slot, 1));
      const store = bring(e.add(at, stages - 1), before);
      products.add(slot);
      store();
      b.store(place, 0, e.where(e.eq(slot, stages - 1), e.i32(0), e.add(slot, 1)));
    });
    return products.results();
  }

  /** Units of a panel that the thread brings: the line and unit, the address in group memory, and whether the unit exists. */
  #units(
    panel: Panel,
    number: number,
    slot: KNode,
    run: (line: KNode, unit: KNode, to: KNode, there: KNode) => void,
  ): void {
    const { e } = this.#values.b;
    const { line, unit, lane } = panel;
    const { pitch, length } = this.#memory[number]!;
    const width = lane?.arg.extent ?? 1;
    const perLine = unit.arg.extent;
    const total = line.arg.extent * perLine;
    for (let first = 0; first < total; first += this.#threads) {
      const nominal = e.add(this.#thread, first);
      const piece = first + this.#threads > total ? e.min(nominal, total - 1) : nominal;
      const [l, u] = [e.idiv(piece, perLine), e.irem(piece, perLine)];
      const to = e.add(e.mul(slot, length), e.add(e.mul(l, pitch), e.mul(u, width)));
      run(l, u, to, e.lt(nominal, total));
    }
  }

  /** Loads a stage of a panel into registers. */
  #load(panel: Panel, number: number, at: KNode, slot: KNode): () => void {
    const { b, scope } = this.#values;
    const { e } = b;
    const zero = e.constant(this.#nest.dtype, 0);
    const stores: (() => void)[] = [];
    this.#units(panel, number, slot, (line, unit, to, there) => {
      scope.withLoop(panel.step, at, () =>
        scope.withLoop(panel.line, line, () =>
          scope.withLoop(panel.unit, unit, () => {
            const keep = (): void => {
              const value = this.#values.lower(panel.value);
              const inside = panel.inside === null ? null : this.#values.lower(panel.inside);
              const held = b.place(inside === null ? value : e.where(inside, value, zero));
              stores.push(() => b.store(this.#memory[number]!.memory, to, held, there));
            };
            if (panel.lane === null) keep();
            else
              scope.withTile(panel.lane, { base: e.i32(0), count: 1, lanes: panel.lane.arg.extent }, () =>
                scope.forEach(scope.tiles, keep),
              );
          }),
        ),
      );
    });
    return () => {
      for (const store of stores) store();
    };
  }

  /** Copies a stage of a panel. */
  #copy(panel: Panel, number: number, at: KNode, slot: KNode): void {
    const { b, scope } = this.#values;
    const { e } = b;
    const [from, index] = (panel.value as KNodeOf<'LOAD'>).src;
    const lanes = panel.lane?.arg.extent ?? 1;
    this.#units(panel, number, slot, (line, unit, to, there) => {
      b.ifThen(there, () =>
        scope.withLoop(panel.step, at, () =>
          scope.withLoop(panel.line, line, () =>
            scope.withLoop(panel.unit, unit, () => {
              const copy = (): void => {
                const src = [this.#memory[number]!.memory, to, from, this.#values.lower(index)];
                if (panel.inside !== null) {
                  const inside = this.#values.lower(panel.inside);
                  if (inside.op !== 'CONST' || inside.arg.value === 0) src.push(inside);
                }
                b.here('COPY', 'void', 1, src, { lanes });
              };
              if (panel.lane === null) copy();
              else scope.withLoop(panel.lane, e.i32(0), copy);
            }),
          ),
        ),
      );
    });
  }
}
