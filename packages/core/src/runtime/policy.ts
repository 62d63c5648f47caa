/** Sets a program's policy for lost and full devices. Programs that never set one do not load this. */
import { type RecoveryPolicy, engines, usualPolicy } from '../engine/registry.ts';
import { checkFields, numberFrom, oneOf } from '@polygrad/compiler/shape/options';
import { keepCopies } from './shadow.ts';

/**
 * Sets what happens when a device is lost or full; entries that are left out get their defaults. Returns the policy before.
 *
 * @throws ArgumentError for entries that are not known, and values that do not fit
 * @example
 * setRecovery({ fallback: 'error', shadow: true });
 * setRecovery({}); // as it was at the start
 */
export function setRecovery(next: Partial<RecoveryPolicy> = {}): RecoveryPolicy {
  checkFields('setRecovery', next, {
    retry: numberFrom(0, 1000, true),
    fallback: oneOf('cpu', 'error'),
    outOfMemory: oneOf('error', 'cpu'),
    shadow: oneOf(true, false),
    interval: numberFrom(0),
    patience: numberFrom(0, 2 ** 31 - 1),
    timeout: numberFrom(1),
  });
  const before = engines.policy;
  const policy = { ...usualPolicy };
  for (const [name, value] of Object.entries(next)) if (value !== undefined) Object.assign(policy, { [name]: value });
  engines.policy = policy;
  if (policy.shadow) keepCopies();
  return before;
}
