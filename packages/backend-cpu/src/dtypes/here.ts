/** What `#dtypes` is outside bundles for browsers: the code of all dtypes is there from the start. */
import { code, type DtypeCode } from './code.ts';

export function dtypeCode(): DtypeCode {
  return code;
}

export function bringDtypes(_code: DtypeCode | null): void {}
