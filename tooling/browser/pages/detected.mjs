/** The page of the README: a small network, on the engine that auto-detection finds. */
import { autoDetectAndConfigureGpu } from '@polygrad/auto-detect';
import { seed, tensor } from '@polygrad/core/functions';
import { Adam, accuracy, crossEntropy, fit, Linear, ReLU, Sequential } from '@polygrad/nn';

export async function train() {
  const { engine, device } = await autoDetectAndConfigureGpu();
  const x = tensor([
    [0, 0],
    [0, 1],
    [1, 0],
    [1, 1],
  ]);
  const y = tensor([0, 1, 1, 0], { dtype: 'int32' });
  seed(3);
  const model = new Sequential(new Linear(2, 8), new ReLU(), new Linear(8, 2));
  // biome-ignore lint/suspicious/noFocusedTests: this fit trains
  const { epochs } = await fit(model, [{ x, y }], {
    optimizer: new Adam(model.parameters(), { lr: 0.05 }),
    loss: crossEntropy,
    metrics: { accuracy },
    epochs: 60,
  });
  return [engine.name, device, epochs.at(-1)?.metrics];
}
