/** A kernel for programs that call the addon itself, and its driver opened. */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

export const addon = createRequire(import.meta.url)(process.env.POLYGRAD_CUDA_ADDON || '../native/build/cuda.node');

/** x[i] += by, for as many elements as there are groups of one thread. Parameters: the address at 0, the number at 8. */
export const addition = `.version 7.0
.target sm_75
.address_size 64
.visible .entry add(
  .param .u64 .ptr .global .align 16 p0,
  .param .f32 s0
)
.reqntid 1, 1, 1
{
  .reg .b32 %r<1>;
  .reg .b64 %rd<3>;
  .reg .f32 %f<3>;
  mov.u32 %r0, %ctaid.x;
  ld.param.b64 %rd0, [p0];
  cvta.to.global.u64 %rd1, %rd0;
  ld.param.f32 %f1, [s0];
  mad.wide.s32 %rd2, %r0, 4, %rd1;
  ld.global.f32 %f0, [%rd2];
  add.rn.f32 %f2, %f0, %f1;
  st.global.f32 [%rd2], %f2;
  ret;
}
`;

/** Opens the driver that POLYGRAD_CUDA_DRIVER names. */
export function open() {
  const reason = addon.open(process.env.POLYGRAD_CUDA_DRIVER ?? '');
  if (reason !== '') throw new Error(reason);
}

/** A library of tests beside a simulated driver, or one that is not there. */
const libraryOfTests = (name) => {
  const driver = process.env.POLYGRAD_CUDA_DRIVER ?? '';
  return driver === '' ? '/nope' : join(dirname(driver), `lib${name}-sim.so`);
};

/** The cuBLASLt of tests. */
export const productLibrary = () => libraryOfTests('cublaslt');

/** The cuDNN of tests. */
export const convolutionLibrary = () => libraryOfTests('cudnn');
