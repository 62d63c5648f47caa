/**
 * Sums of products of a nest written as products of tiles of matrices (MATRIX): what stands in place of the loops of its sum.
 *
 * Both factors are brought to group memory, so many steps of the sum at a time, several stages ahead: by copies beside other work where memory
 * lies as the panel does (COPY), else through registers, loaded before a stage is multiplied and stored after it. One barrier a stage.
 */
import type { KNode, KNodeOf } from '../../ir/ir.ts';
import { type MatrixForm, fragmentLanes, matrixThreads, stepsOf } from '../../ir/matrix.ts';
import type { Range } from '../../ir/free-ranges.ts';
import { assumeBounds, nodesOf } from '../../ir/node.ts';
import { dtypeInfo } from '../../shape/dtype.ts';
import { type Inside, Nest } from './linearize.ts';
import type { Values } from './scope.ts';

/** What a group needs of a factor for one stage, line by line: elements of a side along the sum, or steps of the sum along the side. */
export interface MatrixPanel {
  /** An element, in terms of the ranges below; zero is what lies outside. */
  readonly value: KNode;
  /** Whether the elements of a unit are inside. Null: all are. */
  readonly inside: KNode | null;
  readonly step: Range;
  readonly line: Range;
  /** Units of a line, and the elements of a unit, which lie side by side in memory; null for one. */
  readonly unit: Range;
  readonly lane: Range | null;
  /** Lines are elements of the side; else they are steps of the sum. */
  readonly alongSum: boolean;
  /** Units are 16 bytes that lie in memory as they are needed. */
  readonly copied: boolean;
}

/** How a nest is multiplied. */
export interface MatrixNest {
  readonly form: MatrixForm;
  /** Steps of the sum in a stage, how many stages there are in all, and how many are in group memory at a time. */
  readonly depth: number;
  readonly steps: KNode;
  readonly stages: number;
  /** Sets of 32 threads along columns, and the tiles of each along rows and columns. */
  readonly across: number;
  readonly tiles: readonly [rows: number, columns: number];
  readonly rows: MatrixPanel;
  readonly columns: MatrixPanel;
  /** The range of the sum by which its REDUCE is found among the stores. */
  readonly sum: Range;
  readonly local: Range;
  /** Tiles along rows and columns, the upper and lower half of a tile's rows, and two neighbouring columns. */
  readonly inTile: readonly [row: Range, column: Range, half: Range, pair: Range];
}

/** Bytes of group memory that a panel takes: lines end 16 bytes further, so that threads which read a column of it use different banks. */
export function panelLength({ line, unit, lane }: MatrixPanel, form: MatrixForm): number {
  return line.arg.extent * pitchOf({ unit, lane }, form);
}

function pitchOf({ unit, lane }: Pick<MatrixPanel, 'unit' | 'lane'>, { dtype }: MatrixForm): number {
  return unit.arg.extent * (lane?.arg.extent ?? 1) + 16 / dtypeInfo[dtype].bytes;
}

/** Writes a nest by tiles of matrices. */
export function byMatrices(nest: MatrixNest): Inside {
  const { rows, columns, steps } = nest;
  const always = (panel: MatrixPanel): readonly KNode[] => (panel.inside === null ? [] : [panel.inside]);
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
        const sums = new Products(values, nest, panels, thread, options.threads).run(values.lower(count));
        const [i, j, half, pair] = nest.inTile;
        const open = (r: Range, body: () => void): void => {
          const isVector = r.arg.kind === 'vector';
          scope.withTile(r, b.e.i32(0), isVector ? 1 : r.arg.extent, isVector ? r.arg.extent : 1, body);
        };
        open(i, () =>
          open(j, () =>
            open(half, () =>
              open(pair, () => {
                const found = [...nodesOf(stores.map((s) => s.store))].find(
                  (n) => n.op === 'REDUCE' && n.src.includes(nest.sum),
                )!;
                const results = pair.arg.kind === 'vector' ? sums.pairs() : sums.singles();
                values.results.set(found, { kind: 'values', tiles: [...scope.tiles], values: results });
                new Nest(values, options).writeStores(stores);
              }),
            ),
          ),
        );
      });
    },
  };
}

/** What threads hold at the end: four sums of each tile. */
interface Sums {
  pairs(): readonly KNode[];
  singles(): readonly KNode[];
}

class Products {
  readonly #values: Values;
  readonly #nest: MatrixNest;
  readonly #panels: readonly [MatrixPanel, MatrixPanel];
  readonly #memory: readonly KNodeOf<'SHARED'>[];
  readonly #thread: KNode;
  readonly #threads: number;

  constructor(
    values: Values,
    nest: MatrixNest,
    panels: readonly [MatrixPanel, MatrixPanel],
    thread: KNode,
    threads: number,
  ) {
    this.#values = values;
    this.#nest = nest;
    this.#panels = panels;
    this.#thread = thread;
    this.#threads = threads;
    this.#memory = panels.map((p, i) =>
      values.b.shared(i === 0 ? 'rows' : 'columns', nest.form.dtype, nest.stages * panelLength(p, nest.form)),
    );
  }

  run(steps: KNode): Sums {
    const { b } = this.#values;
    const { e } = b;
    const { stages, tiles } = this.#nest;
    const copies = this.#panels.some((p) => p.copied);
    const sums = b.reg('sum', 'float32', 4, tiles[0] * tiles[1]);
    const zeros = e.constant('float32', 0, 4);
    for (let i = 0; i < tiles[0] * tiles[1]; i++) b.store(sums, i, zeros);
    /** Asks for a stage; what goes through registers is stored by what this returns. */
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
    // Where the stage lies that is multiplied: counted, for a division in every turn costs more.
    const place = b.reg('stage', 'int32');
    b.store(place, 0, e.i32(0));
    b.loop(steps, (at) => {
      if (copies) b.here('WAIT', 'void', 1, [], { pending: stages - 2 });
      b.barrier();
      const slot = b.load(place, 0);
      assumeBounds(slot, 0, stages - 1);
      const before = e.where(e.eq(slot, 0), e.i32(stages - 1), e.sub(slot, 1));
      const store = bring(e.add(at, stages - 1), before);
      this.#multiply(sums, slot);
      store();
      b.store(place, 0, e.where(e.eq(slot, stages - 1), e.i32(0), e.add(slot, 1)));
    });
    const all = Array.from({ length: tiles[0] * tiles[1] }, (_, i) => b.load(sums, i));
    return {
      pairs: () => all.flatMap((v) => [0, 2].map((i) => e.vec([e.lane(v, i), e.lane(v, i + 1)]))),
      singles: () => all.flatMap((v) => [0, 1, 2, 3].map((i) => e.lane(v, i))),
    };
  }

  /** Units of a panel that the thread brings: which line and unit, where in group memory, and whether there is one for it. */
  #units(panel: MatrixPanel, slot: KNode, run: (line: KNode, unit: KNode, to: KNode, there: KNode) => void): void {
    const { e } = this.#values.b;
    const { line, unit, lane } = panel;
    const width = lane?.arg.extent ?? 1;
    const [perLine, pitch] = [unit.arg.extent, pitchOf(panel, this.#nest.form)];
    const total = line.arg.extent * perLine;
    for (let first = 0; first < total; first += this.#threads) {
      const nominal = e.add(this.#thread, first);
      const piece = first + this.#threads > total ? e.min(nominal, total - 1) : nominal;
      const [l, u] = [e.idiv(piece, perLine), e.irem(piece, perLine)];
      const length = panelLength(panel, this.#nest.form);
      const to = e.add(e.mul(slot, length), e.add(e.mul(l, pitch), e.mul(u, width)));
      run(l, u, to, e.lt(nominal, total));
    }
  }

  /** Loads a stage of a panel into registers. */
  #load(panel: MatrixPanel, number: number, at: KNode, slot: KNode): () => void {
    const { b, scope } = this.#values;
    const { e } = b;
    const zero = e.constant(this.#nest.form.dtype, 0);
    const stores: (() => void)[] = [];
    this.#units(panel, slot, (line, unit, to, there) => {
      scope.withLoop(panel.step, at, () =>
        scope.withLoop(panel.line, line, () =>
          scope.withLoop(panel.unit, unit, () => {
            const keep = (): void => {
              const value = this.#values.lower(panel.value);
              const inside = panel.inside === null ? null : this.#values.lower(panel.inside);
              const held = b.place(inside === null ? value : e.where(inside, value, zero));
              stores.push(() => b.store(this.#memory[number]!, to, held, there));
            };
            if (panel.lane === null) keep();
            else scope.withTile(panel.lane, e.i32(0), 1, panel.lane.arg.extent, () => scope.forEach(scope.tiles, keep));
          }),
        ),
      );
    });
    return () => {
      for (const store of stores) store();
    };
  }

  /** Copies a stage of a panel. */
  #copy(panel: MatrixPanel, number: number, at: KNode, slot: KNode): void {
    const { b, scope } = this.#values;
    const { e } = b;
    const [from, index] = (panel.value as KNodeOf<'LOAD'>).src;
    this.#units(panel, slot, (line, unit, to, there) => {
      b.ifThen(there, () =>
        scope.withLoop(panel.step, at, () =>
          scope.withLoop(panel.line, line, () =>
            scope.withLoop(panel.unit, unit, () =>
              scope.withLoop(panel.lane!, e.i32(0), () => {
                const src = [this.#memory[number]!, to, from, this.#values.lower(index)];
                if (panel.inside !== null) {
                  const inside = this.#values.lower(panel.inside);
                  if (inside.op !== 'CONST') src.push(inside);
                }
                b.here('COPY', 'void', 1, src, null);
              }),
            ),
          ),
        ),
      );
    });
  }

  /** The products of a stage. */
  #multiply(sums: KNode, slot: KNode): void {
    const { b } = this.#values;
    const { e } = b;
    const { form, depth, tiles, across } = this.#nest;
    const steps = stepsOf(form.tile);
    const set = e.idiv(this.#thread, matrixThreads);
    const place = [e.idiv(set, across), e.irem(set, across)] as const;
    const sides = [16, 8] as const;
    const fragment = (number: 0 | 1, i: number, first: number): KNode => {
      const panel = this.#panels[number];
      const part = number === 0 ? 'a' : 'b';
      const pitch = pitchOf(panel, form);
      const start = e.mul(slot, panelLength(panel, form));
      const element = e.add(e.mul(place[number], tiles[number] * sides[number]), i * sides[number]);
      const at = panel.alongSum ? e.add(e.mul(element, pitch), first) : e.add(element, first * pitch);
      const arg = {
        tile: form.tile,
        part,
        across: panel.alongSum ? pitch : 1,
        along: panel.alongSum ? 1 : pitch,
      } as const;
      const lanes = fragmentLanes(part, form.tile);
      return b.here('FRAGMENT', form.dtype, lanes, [this.#memory[number]!, e.add(start, at)], arg);
    };
    for (let first = 0; first < depth; first += steps) {
      const right = Array.from({ length: tiles[1] }, (_, j) => fragment(1, j, first));
      for (let i = 0; i < tiles[0]; i++) {
        const left = fragment(0, i, first);
        for (const [j, y] of right.entries()) {
          const number = i * tiles[1] + j;
          const sum = b.load(sums, number);
          b.store(sums, number, b.here('MATRIX', 'float32', 4, [left, y, sum], { tile: form.tile }));
        }
      }
    }
  }
}
