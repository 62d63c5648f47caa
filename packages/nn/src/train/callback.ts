/** Callbacks: what a training loop tells those who follow it, and how they stop it. */
import type { ReadyProgress } from '@polygrad/core/functions';
import type { AnyModule } from '../module/module.ts';
import { hostState, type StateArray } from '../module/state.ts';
import { checkFits, checkOptions } from '../errors.ts';

/** The numbers of one epoch. Losses and metrics are means over rows. */
export interface EpochReport {
  /** From 0. */
  readonly epoch: number;
  /** Loss on the training batches, while their parameters were changing. */
  readonly loss: number;
  /** Metrics on the training batches. */
  readonly metrics: Readonly<Record<string, number>>;
  /** Loss and metrics on the validation batches; null without any. */
  readonly validation: { readonly loss: number; readonly metrics: Readonly<Record<string, number>> } | null;
  /** Time of the training batches, without validation. */
  readonly seconds: number;
  /** Optimizer steps taken in this epoch. */
  readonly steps: number;
  /** Steps of the epoch that made a plan; see `stats` of core. */
  readonly planned?: number;
}

/** Where a training loop is. */
export interface StepReport {
  readonly epoch: number;
  /** Steps of this epoch, counted from 1. */
  readonly step: number;
  /** Steps of an epoch, if known. */
  readonly steps: number | undefined;
  /** Running mean of the loss, as of the last time it was read from the device; null until then. */
  readonly loss: number | null;
  /** Running means of the metrics, likewise. */
  readonly metrics: Readonly<Record<string, number>>;
  /** Plans that the step made: some of the first steps, and those with batches of new shapes. */
  readonly newPlans: number;
}

/** What callbacks are given besides the report. */
export interface LoopControl {
  readonly model: AnyModule;
  readonly epochs: number;
  /** Ends the training after the current epoch's report. */
  stop(): void;
}

/** Functions called at points of the training; each may be asynchronous and is waited for. */
export interface Callback {
  onTrainBegin?(control: LoopControl): void | Promise<void>;
  onEpochBegin?(epoch: number, control: LoopControl): void | Promise<void>;
  /** While kernels of the first step are made, on engines that tell: so many are ready. Not waited for. */
  onCompile?(progress: ReadyProgress, control: LoopControl): void;
  /** After every step. Cheap calls only: it is on the way of every batch. */
  onStep?(report: StepReport, control: LoopControl): void | Promise<void>;
  onEpochEnd?(report: EpochReport, control: LoopControl): void | Promise<void>;
  /** Also called when the training fails. */
  onTrainEnd?(control: LoopControl): void | Promise<void>;
}

/**
 * Stops when a number of the report has not improved for some epochs.
 *
 * @param options watch: the number (default the validation loss, or the loss without validation); patience: epochs to wait (default 3); minDelta: how
 *   much better counts (default 0); best: 'min' or 'max' (default 'min'); restoreBest: the model ends with the parameters and
 *   buffers of its best epoch, also where the training fails or is aborted; the optimizer keeps its state (default false)
 * @throws NnError for options that do not fit; in an epoch where `watch` gives no number
 * @example
 * const data = [{ x: tensor([[-2], [2], [-1], [1]]), y: tensor([0, 1, 0, 1], { dtype: 'int32' }) }];
 * const model = new Linear(1, 2);
 * const optimizer = new SGD(model.parameters(), { lr: 0 });
 * const callbacks = [earlyStopping({ patience: 2 })];
 * const { epochs } = await fit(model, data, { optimizer, loss: crossEntropy, epochs: 100, callbacks });
 * epochs.length; // 3
 */
export function earlyStopping(
  options: {
    readonly watch?: (report: EpochReport) => number;
    readonly patience?: number;
    readonly minDelta?: number;
    readonly best?: 'min' | 'max';
    readonly restoreBest?: boolean;
  } = {},
): Callback {
  checkOptions('earlyStopping', options, 'watch patience# minDelta# best restoreBest?');
  const { watch = (report) => report.validation?.loss ?? report.loss, patience = 3, minDelta = 0 } = options;
  const { best: direction = 'min', restoreBest = false } = options;
  const isFunction = typeof watch === 'function';
  checkFits('earlyStopping', 'watch', watch, isFunction, 'a function of the report, as (report) => report.loss');
  checkFits('earlyStopping', 'best', direction, direction === 'min' || direction === 'max', "'min' or 'max'");
  const sign = direction === 'min' ? 1 : -1;
  let best = Number.POSITIVE_INFINITY;
  let waited = 0;
  // On the host: copies on the device would take as much of its memory as the model, during the whole training.
  let kept: Record<string, StateArray> = {};
  return {
    onTrainBegin() {
      best = Number.POSITIVE_INFINITY;
      waited = 0;
    },
    async onEpochEnd(report, control) {
      const watched = watch(report);
      checkFits('earlyStopping', 'result of watch', watched, typeof watched === 'number', 'a number of the report');
      const value = sign * watched;
      if (value < best - minDelta) {
        best = value;
        waited = 0;
        if (restoreBest) kept = await hostState(control.model.stateDict());
      } else if (++waited >= patience) control.stop();
    },
    onTrainEnd({ model }) {
      if (Object.keys(kept).length > 0) model.loadStateDict(kept);
      kept = {};
    },
  };
}
