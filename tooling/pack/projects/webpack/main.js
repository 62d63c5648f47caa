import { autoDetectAndConfigureGpu } from '@polygrad/auto-detect';
import { tensor } from '@polygrad/core/functions';
import { Adam, fit, Linear, mseLoss } from '@polygrad/nn';

await autoDetectAndConfigureGpu();
const model = new Linear(1, 1);
// biome-ignore lint/suspicious/noFocusedTests: it fits a model
await fit(model, [{ x: tensor([[1]]), y: tensor([[2]]) }], {
  optimizer: new Adam(model.parameters()),
  loss: mseLoss,
  epochs: 1,
});
