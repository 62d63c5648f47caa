/** Entry point @polygrad/core/custom: kernels of users. */
export {
  defineKernel,
  type ElementwiseKernelOptions,
  type GroupKernelOptions,
  type Kernel,
  type KernelDTypes,
  type KernelGradient,
  type KernelGradientContext,
  type KernelInputRule,
  type KernelOptions,
  type KernelOutputRule,
  type KernelShape,
  type ThreadKernelOptions,
} from '../custom/define.ts';
export { KernelError } from '../custom/errors.ts';
export type {
  KernelCombining,
  KernelContext,
  KernelFold,
  KernelMath,
  KernelPlace,
  KernelState,
  KernelVariable,
} from '../custom/context.ts';
export type { KernelIndex, KernelInput, KernelOutput, KernelShared } from '../custom/memory.ts';
export type { KernelOperand, KernelValue } from '../custom/value.ts';
