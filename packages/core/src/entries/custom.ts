/** Entry point @polygrad/core/custom: kernels of users. */
export { defineKernel } from '../custom/define.ts';
export { KernelError } from '../custom/errors.ts';
export type {
  ElementwiseKernelOptions,
  GroupKernelOptions,
  Kernel,
  KernelDTypes,
  KernelGradient,
  KernelGradientContext,
  KernelInputRule,
  KernelOptions,
  KernelOutputRule,
  KernelShape,
  ThreadKernelOptions,
} from '../custom/options.ts';
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
