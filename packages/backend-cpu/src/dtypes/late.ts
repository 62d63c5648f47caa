/** What `#dtypes` is in bundles for browsers: the code is loaded by the first program that needs it. */
import { LateCode } from '@polygrad/core/engine/planned';
import type { DtypeCode } from './code.ts';

const late = /* @__PURE__ */ new LateCode<DtypeCode>(
  'cpu',
  'the code for small dtypes and 64-bit integers',
  "import '@polygrad/backend-cpu/dtypes' to have it from the start",
  async () => (await import('./code.ts')).code,
);

/**
 * The code of small dtypes and 64-bit integers.
 *
 * @throws UnsupportedError while it is on its way, with `until`
 */
export function dtypeCode(): DtypeCode {
  return late.get();
}

/** Has the code at once from here on; with null as if nothing had asked for it yet. */
export function bringDtypes(code: DtypeCode | null): void {
  late.bring(code);
}
