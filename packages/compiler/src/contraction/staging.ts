/**
 * Copies of a factor in the layout that tiles read best, made by a separate dispatch.
 *
 * Panels: for every tile the elements of one step of the sum are adjacent. Domain copies: the factor over its domain
 * (access.ts), padding included, so that no gate remains and unit strides stay unit strides. Where an axis ends at a size given
 * at dispatch, the copy has room for the greatest size. It is filled up to the given one: nothing beyond is read, here or from the copy.
 */
import { type Axis, type LinearAccess, representative, strideNode, type Walk } from './access.ts';
import type { Assembly } from './assembly.ts';
import { type Segment, tilesUntil, tileStart } from './tiles.ts';
import { lineBytes } from '../codegen/costs/caches.ts';
import type { Exprs } from '../ir/expr.ts';
import type { Range } from '../ir/free-ranges.ts';
import type { KNode, LoopStore } from '../ir/ir.ts';
import { type Replacement, Rewriter } from '../ir/rewrite.ts';
import { type DType, dtypeInfo } from '../shape/dtype.ts';

/**
 * Where the tiles of one segment find a factor: element `element` of tile `tile` at
 * `offset + tile * perTile + element * perElement + sum of strides * other ranges`; if `perTile` is null at
 * `offset + position * perElement + ...`, where the position counts from the start of the range.
 */
export interface TileLayout extends Walk {
  readonly memory: KNode;
  readonly offset: number;
  readonly perTile: number | null;
  readonly perElement: number | KNode;
}

/** In place of a layout: a value that groups copy for each tile. */
export interface GroupCopy {
  readonly copied: KNode;
  readonly copy: CopyInGroup;
}

/**
 * Where a group copies columns: what ranges of the factor are there, but those of the sum, and the loops over the group's columns, which
 * are `width` to a tile.
 */
export interface GroupPlace {
  readonly k: readonly Range[];
  readonly at: ReadonlyMap<Range, KNode>;
  readonly loops: readonly Range[];
  readonly width: number;
  readonly columns: number;
}

/** The copy of a group, and its loops over the sum (group-copies.ts). */
export type CopyInGroup = (
  e: Exprs,
  copied: KNode,
  place: GroupPlace,
) => { readonly layout: TileLayout; readonly loops: readonly Range[] };

/** What a copy reads at the place that its loops are at, in place of the factor. */
export type Kept = (e: Exprs, copied: KNode, loopOf: (axis: Axis) => KNode) => KNode;

/** The layout of a factor that is read in place; `along` null: the factor has no range of its own. */
export function layoutInPlace(e: Exprs, access: LinearAccess, along: Range | null): TileLayout {
  const stride = along === null ? 0 : (access.strides.get(along) ?? 0);
  const sized = along === null ? undefined : access.sized?.get(along);
  return { ...access, perTile: null, perElement: sized === undefined ? stride : strideNode(e, sized) };
}

/** An axis as a loop of a copy, and how it replaces the factor's ranges. */
interface CopyAxis {
  readonly loop: Range;
  readonly axis: Axis;
}

function copyAxes(e: Exprs, axes: readonly Axis[]): CopyAxis[] {
  return axes.map((axis) => ({ axis, loop: e.range(axis.extent, 'loop', axis.end) }));
}

function replacements(e: Exprs, axes: readonly CopyAxis[]): Map<Range, Replacement> {
  const map = new Map<Range, Replacement>();
  for (const { axis, loop } of axes) {
    for (const { range } of axis.members) map.set(range, { value: e.i32(0), ranges: [] });
    const { range, step } = representative(axis);
    const at = e.add(loop, axis.low);
    map.set(range, { value: step < 0 ? e.neg(at) : at, ranges: [loop] });
  }
  return map;
}

/** Adds the strides of an axis to a layout. */
function addAxis(strides: Map<Range, number>, axis: Axis, stride: number): number {
  for (const { range, step } of axis.members) strides.set(range, step * stride);
  return -axis.low * stride;
}

/**
 * Copies a factor over its domain, axes in the given order. Pitches of rows, planes and so on are enlarged where they would share
 * cache sets. `room`: elements behind the end that may be read, with any value. `kept`: what is read at a place, if not the factor everywhere.
 */
export function stageDomain(
  assembly: Assembly,
  e: Exprs,
  value: KNode,
  axes: readonly Axis[],
  room: number = 0,
  kept?: Kept,
): LinearAccess {
  const strides = new Map<Range, number>();
  const copies = copyAxes(e, axes);
  const { bytes } = dtypeInfo[value.dtype as DType];
  let offset = 0;
  let size = 1;
  let index: KNode = e.i32(0);
  for (let i = copies.length - 1; i >= 0; i--) {
    const { axis, loop } = copies[i]!;
    offset += addAxis(strides, axis, size);
    index = e.add(index, e.mul(loop, size));
    size *= axis.extent;
    if (i > 0) size = spreadPitch(size, bytes);
  }
  const temp = assembly.temporary(value.dtype as DType, size + room);
  const rewriter = new Rewriter(e, replacements(e, copies));
  const copied = rewriter.node(value);
  const loopOf = (axis: Axis): KNode => copies.find((c) => c.axis === axis)!.loop;
  const store = e.store(temp.write, index, kept?.(e, copied, loopOf) ?? copied);
  assembly.add('_pad', [{ store, ranges: copies.map((c) => c.loop) }], null);
  return { memory: temp.read, offset, strides };
}

/**
 * Copies a factor into panels along its range `along`, which has an axis of its own: for each position of `outside` and each tile, the
 * tile's elements for every position of `inside`. Elements past the end repeat the last one. `axes`: all in the order of the factor's memory, in
 * which it is read. So the lines of a kernel's window are fetched once and not for every element of it.
 */
export function stagePanels(
  assembly: Assembly,
  e: Exprs,
  { value, axes }: { readonly value: KNode; readonly axes: readonly Axis[] },
  { outside: outer, inside: inner }: { readonly outside: readonly Axis[]; readonly inside: readonly Axis[] },
  along: Range,
  segments: readonly Segment[],
): TileLayout[] {
  const extents = (axes: readonly Axis[]): number => axes.reduce((n, a) => n * a.extent, 1);
  const depth = extents(inner);
  let total = 0;
  const starts = segments.map((s) => {
    const start = total;
    total += extents(outer) * s.count * depth * s.width;
    return start;
  });
  const temp = assembly.temporary(value.dtype as DType, total);
  const stores: LoopStore[] = [];
  const layouts = segments.map((s, i): TileLayout => {
    const strides = new Map<Range, number>();
    const [outside, inside] = [copyAxes(e, outer), copyAxes(e, inner)];
    const [tile, element] = [e.range(s.count, 'loop', tilesUntil(e, s)), e.range(s.width)];
    let offset = starts[i]!;
    let index = e.add(offset, element);
    let size = s.width;
    const add = ({ axis, loop }: CopyAxis): void => {
      offset += addAxis(strides, axis, size);
      index = e.add(index, e.mul(loop, size));
      size *= axis.extent;
    };
    for (const c of [...inside].reverse()) add(c);
    const perTile = size;
    index = e.add(index, e.mul(tile, size));
    size *= s.count;
    for (const c of [...outside].reverse()) add(c);

    const at = e.add(tileStart(e, s, tile), element);
    const last = along.arg.extent - 1;
    const clamped = s.end === undefined && s.last + s.width - 1 > last ? e.min(at, last) : at;
    const changes = replacements(e, [...outside, ...inside]);
    changes.set(along, { value: clamped, ranges: [] });
    const store = e.store(temp.write, index, new Rewriter(e, changes).node(value));
    const loops = (axes: readonly CopyAxis[]): Range[] => axes.map((c) => c.loop);
    const within = axes.flatMap((axis) => inside.find((c) => c.axis === axis) ?? []);
    stores.push({ store, ranges: [...loops(outside), tile, ...loops(within), element] });
    return { memory: temp.read, offset, perTile, perElement: 1, strides };
  });
  assembly.add('_pack', stores, null);
  return layouts;
}

/**
 * Distances in memory at which a first-level cache holds less than its size.
 *
 * Lines a multiple of 4096 bytes apart share a set on all common processors. Some also predict the way by those address bits, so
 * a handful of such streams slow each other down.
 */
const pageBytes = 4096;

/** True if, of `streams` streams this many bytes apart, two fall into the same sets. */
export function collide(bytes: number, streams: number): boolean {
  for (let i = 1; i < streams; i++) {
    const d = (Math.abs(bytes) * i) % pageBytes;
    if (Math.min(d, pageBytes - d) < lineBytes) return true;
  }
  return false;
}

/** The least pitch of at least `size` elements whose first multiples do not collide; small pitches are unchanged. */
function spreadPitch(size: number, elementBytes: number): number {
  let pitch = size;
  while (pitch * elementBytes >= 512 && collide(pitch * elementBytes, 9)) pitch += lineBytes / elementBytes;
  return pitch;
}
