/**
 * Blocks of rows, one per group of threads, and the steps that all attention programs of such groups share: masks of a block of
 * scores, and weights with their gradients.
 */
import type { CodegenCaps } from '../../../codegen/lowering.ts';
import type { KNode } from '../../../ir/ir.ts';
import { matrixThreads } from '../../../ir/matrix.ts';
import type { ProgramSet, ProgramWriter } from '../../program-set.ts';
import { type AttentionSpec, fromColumn, type GradientSpec, type Matrix, Operands, placeOf } from '../operands.ts';
import type { SlotView } from '../../scan/scan.ts';
import { Group } from './group.ts';
import type { Team, TeamShape } from './team.ts';
import { MatrixGroup } from './matrices.ts';
import {
  breadthOf,
  heightOf,
  heightOfSets,
  matrixFormOf,
  nameOfSets,
  nameOfTile,
  type OnChip,
  setsFor,
  tilesFor,
} from './tiles.ts';

/** A kind of program: what of it stays on chip. */
export interface Blocks extends OnChip {
  readonly suffix: string;
  /** Blocks are rows for each head, the axes before the last two, of an operand. */
  readonly of: SlotView;
}

/** A program of groups, which each have a block. */
export interface BlockProgram<S extends AttentionSpec> {
  readonly name: 'forward' | 'queries' | 'keys';
  blocks(spec: S, caps: CodegenCaps): Blocks;
  write(block: Block<S>): void;
}

/** What is written for a block. */
export interface Block<S> {
  readonly w: ProgramWriter;
  readonly o: Operands<S & AttentionSpec>;
  readonly g: Team;
  readonly head: KNode;
  /** The row of the block's first. */
  readonly first: KNode;
}

/** True if operands are multiplied as they are, by tiles of matrices. */
export function isByMatrices(spec: AttentionSpec, caps: CodegenCaps): boolean {
  return matrixFormOf(spec, caps) !== null;
}

/** How groups are cut, and what their threads do. */
interface Cut {
  readonly name: string;
  readonly shape: TeamShape;
  readonly make: (w: ProgramWriter, o: Operands) => Team;
}

function headsOf({ of }: Blocks): number {
  return of.view.shape.slice(0, -2).reduce((n, x) => n * x, 1);
}

/** Ways to cut groups, the guess first. */
function cutsFor(spec: AttentionSpec, caps: CodegenCaps, blocks: Blocks): readonly Cut[] {
  const heads = headsOf(blocks);
  const form = matrixFormOf(spec, caps);
  const sets = form === null ? [] : setsFor(caps, spec, form, heads, blocks);
  if (form !== null && sets.length > 0)
    return sets.map((own): Cut => {
      const shape = { threads: own.sets * matrixThreads, height: heightOfSets(own), breadth: own.breadth };
      return { name: nameOfSets(own), shape, make: (w, o) => new MatrixGroup(w, o, form, own) };
    });
  return tilesFor(caps, spec, heads, blocks).map((tile): Cut => {
    const shape = { threads: tile.across * tile.down, height: heightOf(tile), breadth: breadthOf(tile) };
    return { name: nameOfTile(tile), shape, make: (w, o) => new Group(w, o, tile) };
  });
}

/** Names of the tiles that a program may have, the guess first, and of the class of programs for which the fastest is the same. */
export function tilesOf<S extends AttentionSpec>(
  spec: S,
  caps: CodegenCaps,
  program: BlockProgram<S>,
): { readonly names: readonly string[]; readonly key: string } {
  const blocks = program.blocks(spec, caps);
  const names = cutsFor(spec, caps, blocks).map(({ name }) => name);
  const { rows, columns, depth, width, causal, mask } = spec;
  const sizes = [headsOf(blocks), rows, columns].map((n) => 2 ** Math.round(Math.log2(n)));
  const [dtype, kind] = [spec.q.view.dtype, names[0]!.slice(0, 4)];
  const seen = `${causal === null ? '' : ' causal'}${mask === null ? '' : ` ${mask.view.dtype}`}`;
  return { names, key: `attention ${program.name} ${dtype} ${sizes.join('x')} ${depth}x${width} ${kind}${seen}` };
}

/** Adds a program with one group for every block of an operand. `tile`: by name; the guess where none is given, or the name is of none that fits. */
export function addBlocks<S extends AttentionSpec>(
  set: ProgramSet,
  spec: S,
  caps: CodegenCaps,
  program: BlockProgram<S>,
  tile?: string,
): void {
  const all = program.blocks(spec, caps);
  const { suffix, of, count } = all;
  const cuts = cutsFor(spec, caps, all);
  const { shape, make } = cuts.find(({ name }) => name === tile) ?? cuts[0]!;
  const blocks = Math.ceil(count / shape.height);
  const writeBlock = (w: ProgramWriter): void => {
    const { e } = w;
    const o = new Operands<S>(w, spec, caps);
    const [head, first] = [e.idiv(w.group, blocks), e.mul(e.irem(w.group, blocks), shape.height)];
    o.ifThere(of, head, first, count, () => program.write({ w, o, g: make(w, o), head, first }));
  };
  set.add(suffix, headsOf(all) * blocks, writeBlock, shape.threads);
}

/** A score, and whether it counts. */
export interface Masked {
  readonly score: KNode;
  readonly allowed: KNode;
}

/** Scores of queries and keys by their positions, with the mask; `transposed`: rows of the block are keys. */
export function maskedScores<S extends AttentionSpec>(
  { o, g, first }: Block<S>,
  mask: Matrix | null,
  scores: readonly (readonly KNode[])[],
  from: KNode,
  transposed: boolean,
): Masked[][] {
  const { b, e } = o.w;
  const { rows, columns } = o.spec;
  const [rowUnit, columnUnit] = transposed ? [g.breadth, g.height] : [g.height, g.breadth];
  return scores.map((line, i) =>
    line.map((value, j): Masked => {
      const [own, other] = [e.add(first, g.rows[i]!), e.add(from, g.columns[j]!)];
      const [row, column] = transposed ? [other, own] : [own, other];
      let inside = o.sees(row, column);
      if (!o.isWhole(rows, rowUnit)) inside = e.and(inside, e.lt(row, o.now(rows)));
      if (!o.isWhole(columns, columnUnit)) inside = e.and(inside, e.lt(column, o.now(columns)));
      const at = mask === null ? null : placeOf(e, mask, row, column);
      const { score, allowed } = o.masked(o.scaled(value), mask, at, inside);
      return { score: b.place(score), allowed: b.place(allowed) };
    }),
  );
}

/** What programs of gradients read for a query. */
export interface RowFacts {
  readonly log: KNode;
  readonly back: KNode;
}

/** Those of some queries of a head, the `units`-th of blocks that are so long. */
export function factsOf(o: Operands<GradientSpec>, head: KNode, rows: readonly KNode[], unit: number): RowFacts[] {
  const { e, b } = o.w;
  const { spec } = o;
  const made = fromColumn(e, o.matrix(spec.made, head), spec.width);
  const back = o.matrix(spec.back, head);
  return rows.map((row) => {
    const gate = o.isWhole(spec.rows, unit) ? undefined : b.place(e.lt(row, o.now(spec.rows)));
    const [log, less] = [made, back].map((m) => b.place(o.read(m.memory, placeOf(e, m, row, e.i32(0)), 1, gate)));
    return { log: log!, back: less! };
  });
}

/** The weight of a score by the logarithm of its row's sum, and its gradient by that of the weight. */
export function slopeOf(
  o: Operands,
  { score, allowed }: Masked,
  { log, back }: RowFacts,
  byWeight: KNode,
): { weight: KNode; slope: KNode } {
  const { e, b } = o.w;
  const weight = b.place(e.where(allowed, o.exp(e.sub(score, log)), o.number(0)));
  return { weight, slope: b.place(e.where(allowed, e.mul(weight, e.sub(byWeight, back)), o.number(0))) };
}
