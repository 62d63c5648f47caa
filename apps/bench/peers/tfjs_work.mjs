/** What TensorFlow.js does for the benchmarks, on whichever backend is set: in Node (tfjs_peer.mjs) and in a page. */

const rates = { sgd: 0.1, adam: 1e-3 };

class Unsupported extends Error {
  name = 'Unsupported';
}

/**
 * Work of the harness, ready to be measured.
 *
 * @param device `settled` waits for a device that works on its own; `convolves` says that conv2d and maxPool have gradients
 */
export function prepare(tf, tools, work, device = { settled: () => undefined, convolves: false }) {
  const operation = (...rest) => operationOn(tf, tools, device, ...rest);
  const pair = (n, f) => operation([tools.fill(1, n, -1, 1), [n]], [tools.fill(2, n, -1, 1), [n]], f);
  switch (work.kind) {
    case 'gemm':
      return operation(
        [tools.fill(1, work.m * work.k, -1, 1), [work.m, work.k]],
        [tools.fill(2, work.k * work.n, -1, 1), [work.k, work.n]],
        (a, b) => tf.matMul(a, b),
      );
    case 'add':
    case 'small-add':
      return pair(work.n, (a, b) => tf.add(a, b));
    case 'chain':
      return pair(work.n, (a, b) => tf.tidy(() => tf.sub(tf.mul(tf.relu(tf.add(tf.mul(a, b), a)), 0.5), b)));
    case 'sum':
      return operation([tools.fill(3, work.n, 0, 1), [work.n]], null, (a) => tf.sum(a));
    case 'round-trip':
      return pair(work.n, (a, b) => {
        const y = tf.add(a, b);
        y.dataSync();
        return y;
      });
    case 'mlp':
    case 'cnn':
      return training(tf, tools, work, device);
    case 'softmax':
    case 'layer-norm': {
      const side = Math.round(Math.sqrt(work.n));
      const normalized = (a) =>
        tf.tidy(() => {
          const { mean, variance } = tf.moments(a, 1, true);
          return tf.mul(tf.sub(a, mean), tf.rsqrt(tf.add(variance, 1e-5)));
        });
      const f = work.kind === 'softmax' ? (a) => tf.softmax(a) : normalized;
      return operation([tools.fill(1, work.n, -1, 1), [side, side]], null, f);
    }
    case 'conv': {
      const { batch, channels, side, filters } = work;
      const x = tools.fill(1, batch * channels * side * side, -1, 1);
      const kernel = tools.fill(2, filters * channels * 9, -1, 1);
      const y = operation(
        [channelsLast(x, batch, channels, side * side), [batch, side, side, channels]],
        [filtersLast(kernel, filters, channels), [3, 3, channels, filters]],
        (a, b) => tf.conv2d(a, b, 1, 'same'),
        (values) => channelsLast(values, batch, side * side, filters),
      );
      return { ...y, note: 'channels last, as it works best' };
    }
    default:
      throw new Unsupported('computes at once: there is nothing to record');
  }
}

function operationOn(tf, tools, { settled }, first, second, f, arrange = (values) => values) {
  const a = tf.tensor(...first);
  const b = second === null ? null : tf.tensor(...second);
  return {
    async run(count) {
      for (let i = 0; i < count; i++) f(a, b).dispose();
      await settled();
    },
    async probe() {
      const y = f(a, b);
      const values = arrange(await y.data());
      y.dispose();
      return values.length === 1 ? [values[0]] : tools.probePositions(values.length).map((p) => values[p]);
    },
    dispose: () => tf.dispose([a, b].filter((t) => t !== null)),
  };
}

/** Axes 1 and 2 of `groups` matrices exchanged. */
function channelsLast(values, groups, rows, columns) {
  const size = rows * columns;
  const out = new Float32Array(values.length);
  for (let g = 0; g < groups; g++)
    out.set(transposed(values.subarray(g * size, (g + 1) * size), rows, columns), g * size);
  return out;
}

/** Filters [filters, channels, 3, 3] as [3, 3, channels, filters]. */
function filtersLast(kernel, filters, channels) {
  return transposed(channelsLast(kernel, filters, channels, 9), filters, 9 * channels);
}

/** Rows and columns exchanged: the harness's weights are [out, in]. */
function transposed(values, rows, columns) {
  const out = new Float32Array(values.length);
  for (let r = 0; r < rows; r++) for (let c = 0; c < columns; c++) out[c * rows + r] = values[r * columns + c];
  return out;
}

function training(tf, tools, work, { settled, convolves }) {
  const { batch } = work;
  const weights = (seed, count, fanIn) => tools.fill(seed, count, -(fanIn ** -0.5), fanIn ** -0.5);
  const variable = (values, shape) => tf.tidy(() => tf.variable(tf.tensor(values, shape)));
  const linear = (seed, inputs, outputs) =>
    variable(transposed(weights(seed, inputs * outputs, inputs), outputs, inputs), [inputs, outputs]);
  const bias = (n) => variable(new Float32Array(n), [n]);
  let x;
  let forward;
  let variables;
  if (work.kind === 'mlp') {
    x = tf.tensor(tools.fill(10, batch * 784, 0, 1), [batch, 784]);
    const [w1, b1, w2, b2] = (variables = [linear(11, 784, 128), bias(128), linear(12, 128, 10), bias(10)]);
    forward = () => tf.add(tf.matMul(tf.relu(tf.add(tf.matMul(x, w1), b1)), w2), b2);
  } else {
    x = tf.tensor(tools.fill(20, batch * 784, 0, 1), [batch, 28, 28, 1]);
    // The backend has no gradient of conv2d and of maxPool: a sum of nine shifted products and a maximum over blocks do the same.
    // A backend that has them gets the filters whole.
    const kernel = (seed, inputs, outputs) => {
      const values = transposed(weights(seed, outputs * inputs * 9, inputs * 9), outputs * inputs, 9);
      if (convolves)
        return [
          variable(filtersLast(weights(seed, outputs * inputs * 9, inputs * 9), outputs, inputs), [
            3,
            3,
            inputs,
            outputs,
          ]),
        ];
      return Array.from({ length: 9 }, (_, at) => {
        const part = values.subarray(at * outputs * inputs, (at + 1) * outputs * inputs);
        return variable(transposed(part, outputs, inputs), [inputs, outputs]);
      });
    };
    const [k1, k2] = [kernel(21, 1, 8), kernel(22, 8, 16)];
    const [b1, b2, w, b] = [bias(8), bias(16), linear(23, 784, 10), bias(10)];
    variables = [...k1, ...k2, b1, b2, w, b];
    const conv = (h, kernels, c) => {
      if (convolves) return tf.maxPool(tf.relu(tf.add(tf.conv2d(h, kernels[0], 1, 'same'), c)), 2, 2, 'valid');
      const [n, rows, columns, channels] = h.shape;
      const padded = tf.pad(h, [
        [0, 0],
        [1, 1],
        [1, 1],
        [0, 0],
      ]);
      const products = kernels.map((k, at) => {
        const part = tf.slice(padded, [0, Math.floor(at / 3), at % 3, 0], [n, rows, columns, channels]);
        return tf.matMul(tf.reshape(part, [n * rows * columns, channels]), k);
      });
      const y = tf.relu(tf.add(tf.addN(products), c));
      const blocks = tf.reshape(y, [n, rows / 2, 2, columns / 2, 2, c.shape[0]]);
      return tf.max(tf.max(blocks, 4), 2);
    };
    // Channels first before the last layer, so that its weights mean the same as elsewhere.
    forward = () => {
      const features = tf.transpose(conv(conv(x, k1, b1), k2, b2), [0, 3, 1, 2]);
      return tf.add(tf.matMul(tf.reshape(features, [batch, 784]), w), b);
    };
  }
  const oneHot = (set) => {
    const hot = new Float32Array(batch * 10);
    for (let i = 0; i < batch; i++) hot[i * 10 + tools.label(set, i)] = 1;
    return tf.tensor(hot, [batch, 10]);
  };
  const targets = Array.from({ length: tools.labelSets }, (_, set) => oneHot(set));
  const optimizer = work.optimizer === 'adam' ? tf.train.adam(rates.adam, 0.9, 0.999, 1e-8) : tf.train.sgd(rates.sgd);
  let at = 0;
  const step = (wantLoss) => {
    const target = targets[at++ % targets.length];
    return optimizer.minimize(() => tf.losses.softmaxCrossEntropy(target, forward()), wantLoss, variables);
  };
  return {
    async run(count) {
      for (let i = 0; i < count; i++) step(false);
      await settled();
    },
    async probe() {
      const losses = [];
      for (let i = 0; i < targets.length; i++) {
        const loss = step(true);
        losses.push((await loss.data())[0]);
        loss.dispose();
      }
      return losses;
    },
    ...(work.kind === 'cnn' && !convolves
      ? { note: 'convolution as nine products: conv2d has no gradient on this backend' }
      : {}),
    dispose() {
      tf.dispose([x, targets, variables]);
      optimizer.dispose();
    },
  };
}
