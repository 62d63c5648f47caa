/**
 * The least memory that a training step of ResNet-18 needs, in bytes. Parameters and the two moments of Adam are held all along, gradients from when
 * they are computed to the update. Of activations what a derivative reads is held until it has. That is the input of a convolution, and that of a
 * batch norm, which is the convolution's result. What a ReLU let through the next convolution keeps anyway. At each layer the gradients of its result
 * and of its input are there too. Nothing is computed twice. The update of a parameter needs no memory of its own.
 */
import type { NetworkSpec } from '../work/networks.ts';

/** Float32 counts of one convolution with its batch norm. */
interface Layer {
  readonly parameters: number;
  /** Elements of what the convolution reads, not counting what another one of the same input keeps already. */
  readonly kept: number;
  /** Elements of its result. */
  readonly result: number;
  readonly input: number;
}

export function leastBytes({ width, side }: Extract<NetworkSpec, { network: 'resnet18' }>, batch: number): number {
  const layers: Layer[] = [];
  const conv = (inputs: number, outputs: number, kernel: number, from: number, to: number, shared = false): void => {
    const input = batch * inputs * from * from;
    layers.push({
      parameters: inputs * outputs * kernel * kernel + 2 * outputs,
      kept: shared ? 0 : input,
      result: batch * outputs * to * to,
      input,
    });
  };
  conv(3, width, 3, side, side);
  let [channels, extent] = [width, side];
  for (const times of [1, 2, 4, 8])
    for (const block of [0, 1]) {
      const outputs = width * times;
      const stride = times > 1 && block === 0 ? 2 : 1;
      const to = Math.ceil(extent / stride);
      if (stride > 1) conv(channels, outputs, 1, extent, to);
      conv(channels, outputs, 3, extent, to, stride > 1);
      conv(outputs, outputs, 3, to, to);
      [channels, extent] = [outputs, to];
    }
  const classes = 10;
  const last = channels * classes + classes;
  const parameters = layers.reduce((sum, layer) => sum + layer.parameters, last);
  // What the last ReLU let through is kept too, for its own derivative.
  let kept = layers.reduce((sum, layer) => sum + layer.kept + layer.result, batch * channels * extent * extent);
  let gradients = last;
  let most = 0;
  for (const { parameters: own, kept: input, result, input: read } of layers.toReversed()) {
    gradients += own;
    most = Math.max(most, 3 * parameters + gradients + kept + result + read);
    kept -= input + result;
  }
  return 4 * most;
}
