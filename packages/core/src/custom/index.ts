/** Entry point @polygrad/core/custom: kernels of users. */
export { defineKernel } from './define.ts';
export { KernelError } from './errors.ts';
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
} from './options.ts';
export type {
  KernelCombining,
  KernelContext,
  KernelFold,
  KernelMath,
  KernelPlace,
  KernelState,
  KernelVariable,
} from './context.ts';
export type { KernelIndex, KernelInput, KernelOutput, KernelShared } from './memory.ts';
export type { KernelOperand, KernelValue } from './value.ts';
