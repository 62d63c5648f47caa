/** evaluate: loss and metrics of a model over batches, with everything in evaluation mode and no gradients. */
import { noGrad, scope, type SmallFloat, type Tensor, throttle } from '@polygrad/core/functions';
import { checkFunction, checkRequired, checkTensor, NnError } from '../errors.ts';
import { checkModule, type Module } from '../module/module.ts';
import { mixedRunner } from '../precision/mixed.ts';
import { type BatchSource, checkSource, passOf, toDevice } from './batch.ts';
import { checkMetrics, Meter, type Metrics, scoresOf } from './meter.ts';

/** A loss of a batch: the mean over its rows, a scalar. */
export type LossFunction = (prediction: Tensor, target: Tensor) => Tensor;

/** Options of `evaluate`. */
export interface EvaluateOptions {
  readonly loss: LossFunction;
  readonly metrics?: Metrics;
  /** Mixed precision, as in `autocast`. */
  readonly precision?: SmallFloat;
}

/** Means over all rows. */
export interface Evaluation {
  readonly loss: number;
  readonly metrics: Readonly<Record<string, number>>;
  readonly rows: number;
}

/**
 * Loss and metrics of a model over one pass of batches. The model is put into evaluation mode and back as it was.
 *
 * @param model a module from inputs `x` to predictions
 * @param data batches with `x` and `y`
 * @param options the loss (a mean over rows) and metrics
 * @throws NnError if there are no batches, or `x` and `y` differ in rows
 * @example
 * const data = [{ x: tensor([[1, 0], [0, 1]]), y: tensor([0, 0], { dtype: 'int32' }) }];
 * const { metrics, rows } = await evaluate(new Flatten(), data, { loss: crossEntropy, metrics: { accuracy } });
 * metrics; // { accuracy: 0.5 }
 * rows; // 2
 */
export async function evaluate(model: Module, data: BatchSource, options: EvaluateOptions): Promise<Evaluation> {
  checkModule('evaluate', model);
  checkSource('evaluate', 'data', data);
  checkRequired('evaluate', options, 'loss! metrics precision');
  const { loss, metrics = {}, precision } = options;
  checkFunction('evaluate', 'loss', loss);
  checkMetrics('evaluate', metrics);
  const run = mixedRunner(precision);
  const names = Object.keys(metrics);
  const meter = new Meter(['loss', ...names], metrics);
  const modes = model.namedModules().map(([, module]) => [module, module.training] as const);
  model.eval();
  try {
    for await (const batch of passOf(data, 0)) {
      scope(() =>
        noGrad(() => {
          const { x, y, rows } = toDevice('evaluate', batch);
          const [prediction, value] = run(() => {
            const found = model.forward(x);
            return [found, loss(found, y)] as const;
          });
          const scores = names.map((name) => scoresOf(metrics[name]!, prediction, y));
          checkTensor('evaluate', 'result of loss', value);
          meter.add([value.mul(rows), ...scores], rows);
        }),
      );
      await throttle();
    }
    if (meter.batches === 0) throw new NnError('evaluate', 'there are no batches; give at least one');
    const { loss: mean, ...values } = await meter.read();
    return { loss: mean!, metrics: values, rows: meter.rows };
  } finally {
    for (const [module, training] of modes) module.training = training;
    meter.dispose();
  }
}
