/**
 * What `#rare` is in bundles for browsers: rare forms are loaded by the first plan that has use of them, which waits. A reader that cannot wait gets a plan without
 * them. After a failed load nobody waits: each plan that has use of them does without, and tries again for those behind it.
 */
import { UnsupportedError } from '../../engine/errors.ts';
import type { RareForms } from './forms.ts';

let forms: RareForms | null = null;
let loading: Promise<void> | null = null;
/** True for a reader that cannot wait, and from a failed load on. */
let without = false;

function doWithout<R>(run: () => R): R {
  const before = without;
  without = true;
  try {
    return run();
  } finally {
    without = before;
  }
}

/**
 * Forms of work that few programs have; null where plans do without them. Work that is not worth loading them never gets any, whoever has loaded them before: its
 * results do not depend on that.
 *
 * @throws UnsupportedError while they are on their way, with `until` and `without`
 */
export function rareForms(isWorth: boolean = true): RareForms | null {
  if (!isWorth) return null;
  if (forms !== null) return forms;
  loading ??= import('./forms.ts').then(
    (module) => {
      forms = module.forms;
    },
    () => {
      without = true;
      loading = null;
    },
  );
  if (without) return null;
  throw new UnsupportedError('plan', 'forms of rare work are being loaded', loading, doWithout);
}
