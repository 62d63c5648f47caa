/**
 * Two calls of one function at two sizes: whether they do the same, as far as sizes let them, and then they hold their kernels together.
 *
 * Both used the plans of a class of sizes, so their operations are known to be the same, and their shapes follow from the sizes. What is compared
 * here is all that is no part of a plan: tensors from outside, data of the host, effects, results, and numbers. A number may differ
 * as the sizes do, as in a mean. Everything else must be equal: a function may do something else at another size.
 */
import type { KernelEntry } from '../planner/lowering/kernel-cache.ts';
import {
  alike,
  dropHold,
  type Flushed,
  freeArguments,
  type Input,
  type Made,
  namedAlike,
  type Place,
  sameDecisions,
  sameLive,
  sameNumbers,
  sameResult,
  sameUpload,
  type Scalar,
  type Script,
  type Storage,
} from './script.ts';

/** The kernels of the first plan for a class of sizes; null if the script used none. */
export function classOf({ flushed }: Script): readonly KernelEntry[] | null {
  for (let i = 0; i < flushed.length; i++) if (flushed[i]!.sizes.length > 0) return flushed[i]!.kernels;
  return null;
}

/** True if two scripts differ in nothing but the sizes that their plans are bound to, and what follows from them. */
export function doSame(a: Script, b: Script): boolean {
  return (
    a.state === b.state &&
    a.forgotten === b.forgotten &&
    a.tracked === b.tracked &&
    a.draws === b.draws &&
    a.effects.length === b.effects.length &&
    alike(a.flushed, b.flushed, flushedAlike) &&
    alike(a.inputs, b.inputs, inputsAlike) &&
    alike(a.inputs, b.inputs, namedAlike) &&
    sameDecisions(a.decisions, b.decisions) &&
    alike(a.live, b.live, sameLive) &&
    alike(a.uploads, b.uploads, sameUpload) &&
    alike(a.fresh, b.fresh, (x, y) => (x === null) === (y === null)) &&
    alike(
      a.assigned,
      b.assigned,
      (x, y) => placedAlike(x, y) && x.input === y.input && x.source === y.source && x.inPlace === y.inPlace,
    ) &&
    alike(a.made, b.made, madeAlike) &&
    sameResult(a.result, b.result) &&
    stepsAlike(a, b)
  );
}

/** The same plan: for fixed sizes, or for a class. */
const flushedAlike = (a: Flushed, b: Flushed): boolean =>
  a.kernels === b.kernels && sameNumbers(a.leaves, b.leaves) && (a.sizes.length > 0 || sameNumbers(a.key, b.key));

/** Arguments may have other sizes, tensors from outside may not. */
function inputsAlike(a: Input, b: Input): boolean {
  const isArgument = a.sources.every(({ argument }) => argument >= 0);
  return (
    a.dtype === b.dtype &&
    a.requiresGrad === b.requiresGrad &&
    a.beside === b.beside &&
    a.shift === b.shift &&
    a.written === b.written &&
    Object.is(a.value, b.value) &&
    (isArgument || (sameNumbers(a.shape, b.shape) && sameNumbers(a.strides, b.strides)))
  );
}

const placedAlike = (a: Storage, b: Storage): boolean => a.slot === b.slot && a.offset === b.offset;

const madeAlike = (a: Made, b: Made): boolean =>
  placedAlike(a, b) && a.dtype === b.dtype && a.released === b.released && a.shape.length === b.shape.length;

function stepsAlike(a: Script, b: Script): boolean {
  const follows = following(a, b);
  const numbers = (x: Scalar, y: Scalar): boolean =>
    typeof x === 'object' || typeof y === 'object'
      ? typeof x === 'object' && typeof y === 'object' && x.live === y.live
      : Object.is(x, y) || follows(Number(x), Number(y));
  return alike(a.steps, b.steps, (x, y) => {
    if (x.kind === 'copy') return y.kind === 'copy' && at(x.from, y.from) && at(x.to, y.to);
    if (x.kind === 'fill') return y.kind === 'fill' && at(x.to, y.to) && x.pattern === y.pattern;
    return (
      y.kind === 'dispatch' &&
      x.kernel === y.kernel &&
      alike(x.bindings, y.bindings, at) &&
      alike(x.scalars, y.scalars, numbers)
    );
  });
}

/** Temporaries get places anew for each size. Where in memory of its own a plan puts something, follows from the plan and its sizes. */
const at = (a: Place, b: Place): boolean => a.slot === b.slot && (a.slot < 0 || a.offset === b.offset);

/** Numbers of float32 have 24 binary digits. */
const rounding: number = 2 ** -22;

/**
 * Whether a number that is one at the first sizes and another at the second differs as they do. Such numbers are multiples of a size or of the
 * product of all, and what is a fixed distance from a size. Also the reciprocals of these.
 */
function following(a: Script, b: Script): (was: number, is: number) => boolean {
  const ratios: number[] = [];
  const steps: number[] = [];
  for (const [i, { sizes }] of a.flushed.entries()) {
    const now = b.flushed[i]!.sizes;
    let product = 1;
    for (const [k, n] of sizes.entries()) {
      const ratio = now[k]! / n;
      product *= ratio;
      ratios.push(ratio, 1 / ratio);
      steps.push(now[k]! - n);
    }
    if (sizes.length > 1) ratios.push(product, 1 / product);
  }
  const isNear = (x: number, y: number): boolean => Math.abs(x - y) <= rounding * Math.abs(y);
  return (was, is) =>
    ratios.some((ratio) => isNear(was * ratio, is)) ||
    steps.some((step) => isNear(was + step, is) || isNear(1 / was + step, 1 / is));
}

/** Has a script that does the same as another at other sizes hold its kernels with that one. Arguments for which both had different tensors are free. */
export function holdWith(script: Script, other: Script): void {
  freeArguments(script, other);
  dropHold(script.hold, script.state);
  script.hold = other.hold;
  script.hold.users++;
}
