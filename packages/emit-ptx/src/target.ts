/** Which instruction set and which card a text says it is for. */
import { PtxError, type PtxTarget } from './kernel.ts';

/** Compute capabilities that a text may name, and the first version of the instruction set that knows each; later cards run earlier ones' texts. */
const known: readonly (readonly [capability: number, isa: string])[] = [
  [120, '8.7'],
  [100, '8.6'],
  [90, '7.8'],
  [89, '7.8'],
  [86, '7.1'],
  [80, '7.0'],
  [75, '6.3'],
];

/** The least compute capability there are kernels for. */
export const leastCapability = 75;

/** 7.8 as 708, so that 8.10 comes after 8.9. */
function order(isa: string): number {
  const [major = 0, minor = 0] = isa.split('.').map(Number);
  return 100 * major + minor;
}

/**
 * The compute capability to name for a card and what its driver takes: the card's, or the latest before it that is known.
 *
 * @throws PtxError for a card or an instruction set that is too old
 * @example
 * import { capabilityFor } from '@polygrad/emit-ptx';
 * console.log(capabilityFor({ computeCapability: 86, isa: '7.0' })); //=> 80
 */
export function capabilityFor({ computeCapability, isa }: PtxTarget): number {
  const chosen = known.find(([capability, first]) => capability <= computeCapability && order(first) <= order(isa));
  if (chosen !== undefined) return chosen[0];
  if (computeCapability < leastCapability)
    throw new PtxError(`a card of compute capability ${computeCapability} is too old: it takes ${leastCapability}`);
  throw new PtxError(`PTX ${isa} is too old: it takes 6.3; install a newer driver`);
}
