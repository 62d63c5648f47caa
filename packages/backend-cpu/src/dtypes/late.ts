/**
 * What `#dtypes` is in bundles for browsers: the code is loaded by the first program that needs it, which waits for it as for data of
 * another engine. After a failed load the next request tries again.
 */
import { UnsupportedError } from '@polygrad/core/engine';
import type { DtypeCode } from './code.ts';

let there: DtypeCode | null = null;
let loading: Promise<void> | null = null;

const remedy = "import '@polygrad/backend-cpu/dtypes' to have it from the start";

/**
 * The code of small dtypes and 64-bit integers.
 *
 * @throws UnsupportedError while it is on its way, with `until`
 */
export function dtypeCode(): DtypeCode {
  if (there !== null) return there;
  if (loading === null) {
    loading = load();
    // The reader gets the error.
    loading.catch(() => undefined);
  }
  throw new UnsupportedError(
    'cpu',
    `the code for small dtypes and 64-bit integers is still being loaded; read with await, as await t.data() does, or ${remedy}`,
    loading,
  );
}

async function load(): Promise<void> {
  try {
    bringDtypes((await import('./code.ts')).code);
  } catch (error) {
    throw new UnsupportedError(
      'cpu',
      `the code for small dtypes and 64-bit integers cannot be loaded (${error}); read again when the page's server answers, or ${remedy}`,
    );
  } finally {
    loading = null;
  }
}

/** Has the code at once from here on; with null as if nothing had asked for it yet. */
export function bringDtypes(code: DtypeCode | null): void {
  there = code;
}
