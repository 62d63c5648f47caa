/**
 * What work and transfers cost on an engine, in milliseconds: the kind and the amount of a node's work, measured curves of a kind, and estimates from them.
 *
 * Amounts count what determines the time: elements of the result for elementwise work, elements read for reductions, multiplications
 * for contractions. Index maps and unchanged values are no work.
 *
 * A curve has the time of one kernel of a family alone, its launch included, at sizes from 100 to 10 million. Between two sizes it is
 * linear; beyond the last one it has the slope between the last two.
 */
import { isOp, type Node } from '../graph/node.ts';
import { definitionAt } from '../graph/definition.ts';
import { sizeOf } from '@polygrad/compiler/shape/view';

/** Kinds of work whose relative speed differs between devices. */
export type OperationFamily = 'elementwise' | 'reduction' | 'product' | 'convolution' | 'indexing' | 'sort' | 'scan';

export const operationFamilies: readonly OperationFamily[] = [
  'elementwise',
  'reduction',
  'product',
  'convolution',
  'indexing',
  'sort',
  'scan',
];

/** The family of a node that is to be computed; null for nodes that become part of any kernel that uses them, and for loops. */
export function familyOf(node: Node): OperationFamily | null {
  const { role } = definitionAt(node.kind);
  switch (role) {
    case 'elementwise':
    case 'materialize':
      return 'elementwise';
    case 'generate':
      return node.op === 'randomBits' ? 'elementwise' : null;
    case 'reduce':
      return 'reduction';
    case 'contraction':
      return node.op === 'conv' ? 'convolution' : 'product';
    case 'gather':
      return 'indexing';
    case 'program':
      return node.op === 'argSort' ? 'sort' : node.op === 'scan' ? 'scan' : 'indexing';
    case 'leaf':
    case 'movement':
    case 'pass':
    case 'loop':
      return null;
    default:
      return role satisfies never;
  }
}

/** The amount of work, as its family counts it. */
export function workOf(node: Node): number {
  const size = sizeOf(node.shape);
  const first = node.src[0];
  if (isOp(node, 'dotGeneral'))
    return node.attr.lhsContract.reduce((product, axis) => product * first!.shape[axis]!, size);
  if (isOp(node, 'conv')) {
    const [features = 1, ...kernel] = node.src[1]!.shape;
    return size * (features === 0 ? 0 : kernel.reduce((product, n) => product * n, 1));
  }
  if (isOp(node, 'fold')) return size * node.attr.size.reduce((product, n) => product * n, 1);
  const { role } = definitionAt(node.kind);
  if (role === 'reduce' || role === 'program')
    return node.src.reduce((most, s) => Math.max(most, sizeOf(s.shape)), size);
  return size;
}

/** Milliseconds by size, sizes ascending. */
export type CostCurve = readonly (readonly [size: number, milliseconds: number])[];

/** Milliseconds of a copy: fixed, and per byte. */
export interface TransferCost {
  readonly latency: number;
  readonly perByte: number;
}

/** Costs of an engine. */
export interface EngineCosts {
  readonly families: Readonly<Record<OperationFamily, CostCurve>>;
  /** Milliseconds per element that one more elementwise operation adds to a kernel. */
  readonly fused: number;
  /** From host arrays to the device, and back. */
  readonly upload: TransferCost;
  readonly download: TransferCost;
}

/** Milliseconds of one kernel. */
export function kernelCost(curve: CostCurve, size: number): number {
  const [first] = curve;
  if (first === undefined) return 0;
  if (size <= first[0]) return first[1];
  let at = 1;
  while (at < curve.length - 1 && curve[at]![0] < size) at++;
  const [n, ms] = curve[at - 1]!;
  const next = curve[at];
  if (next === undefined) return (ms * size) / n;
  const slope = Math.max(0, next[1] - ms) / (next[0] - n);
  return ms + slope * (size - n);
}

/** Milliseconds to bring bytes from one engine to another, through the host. */
export function crossingCost(from: EngineCosts, to: EngineCosts, bytes: number): number {
  return bytes === 0 ? 0 : copyCost(from.download, bytes) + copyCost(to.upload, bytes);
}

export function copyCost({ latency, perByte }: TransferCost, bytes: number): number {
  return bytes === 0 ? 0 : latency + perByte * bytes;
}

/** A curve of work that takes a launch and some nanoseconds per element. */
function line(launch: number, nanoseconds: number): CostCurve {
  return [100, 1e7].map((size) => [size, launch + size * nanoseconds * 1e-6] as const);
}

function lines(launch: number, each: Readonly<Record<OperationFamily, number>>): EngineCosts['families'] {
  const entries = Object.entries(each).map(([family, nanoseconds]) => [family, line(launch, nanoseconds)]);
  return Object.fromEntries(entries) as unknown as EngineCosts['families'];
}

/*
 * Assumptions without measurements: a processor of about 10 GB/s and 20 Gflop/s, and a card of about 150 GB/s and 2 Tflop/s behind
 * a bus of 5 GB/s. `calibrate()` measures.
 */

/** An unknown processor. */
export const assumedProcessor: EngineCosts = /* @__PURE__ */ (() => ({
  families: lines(0.005, {
    elementwise: 1,
    reduction: 0.4,
    product: 0.1,
    convolution: 0.12,
    indexing: 3,
    sort: 60,
    scan: 2,
  }),
  fused: 0.2e-6,
  upload: { latency: 0.002, perByte: 1e-7 },
  download: { latency: 0.002, perByte: 1e-7 },
}))();

/** An unknown graphics card. */
export const assumedDevice: EngineCosts = /* @__PURE__ */ (() => ({
  families: lines(0.05, {
    elementwise: 0.08,
    reduction: 0.03,
    product: 0.001,
    convolution: 0.002,
    indexing: 0.15,
    sort: 3,
    scan: 0.15,
  }),
  fused: 0.01e-6,
  upload: { latency: 0.03, perByte: 2e-7 },
  download: { latency: 0.1, perByte: 2e-7 },
}))();
