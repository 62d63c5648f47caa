/**
 * Networks of the benchmarks in TensorFlow.js: the same as apps/bench/src/networks, with the parameters and inputs that the harness draws.
 * Parameters come in PyTorch's layout and are turned once, to how TensorFlow.js works best.
 */

class Unsupported extends Error {
  name = 'Unsupported';
}

const learningRate = 1e-3;

/** Variables by PyTorch's names. */
function variablesOf(tf, tools) {
  const all = [];
  const variable = (make) => {
    const made = tf.tidy(() => tf.variable(make()));
    all.push(made);
    return made;
  };
  const plain = (name, ...shape) => variable(() => tf.tensor(tools.parameterOf(name, shape), shape));
  const turned = (name, shape, order) =>
    variable(() => tf.transpose(tf.tensor(tools.parameterOf(name, shape), shape), order));
  return {
    all,
    plain,
    /** x W^T + b. */
    linear(name, inputs, outputs) {
      const weight = turned(`${name}.weight`, [outputs, inputs], [1, 0]);
      const bias = plain(`${name}.bias`, outputs);
      return (x) => tf.add(tf.matMul(x, weight), bias);
    },
    /** A matrix [outputs, inputs] without a layer's name. */
    matrix: (name, outputs, inputs) => turned(name, [outputs, inputs], [1, 0]),
    filters: (name, outputs, inputs, kernel) => turned(name, [outputs, inputs, kernel, kernel], [2, 3, 1, 0]),
    norm(name, width) {
      const [scale, shift] = [plain(`${name}.weight`, width), plain(`${name}.bias`, width)];
      return (x) => {
        const { mean, variance } = tf.moments(x, -1, true);
        return tf.add(tf.mul(tf.mul(tf.sub(x, mean), tf.rsqrt(tf.add(variance, 1e-5))), scale), shift);
      };
    },
  };
}

function crossEntropy(tf, logits, classes) {
  const hot = tf.oneHot(classes, logits.shape.at(-1));
  return tf.losses.softmaxCrossEntropy(hot, logits);
}

const noConvolution = 'conv2d has no gradient on this backend';

const makers = {
  mlp(tf, v, { inputs, hidden, outputs }) {
    const [first, second] = [v.linear('0', inputs, hidden), v.linear('2', hidden, outputs)];
    const forward = (x) => second(tf.relu(first(x)));
    return { loss: (x, y) => crossEntropy(tf, forward(x), y), infer: (x) => tf.max(forward(x)) };
  },
  /** The backend has no gradient of conv2d and of maxPool: nine shifted products and a maximum over blocks do the same. */
  cnn(tf, v) {
    const [k1, b1, k2, b2] = [
      v.filters('0.weight', 8, 1, 3),
      v.plain('0.bias', 8),
      v.filters('3.weight', 16, 8, 3),
      v.plain('3.bias', 16),
    ];
    const last = v.linear('7', 784, 10);
    const stage = (h, kernel, bias) => {
      const [n, rows, columns, channels] = h.shape;
      const outputs = bias.shape[0];
      const padded = tf.pad(h, [
        [0, 0],
        [1, 1],
        [1, 1],
        [0, 0],
      ]);
      const products = Array.from({ length: 9 }, (_, at) => {
        const [r, c] = [Math.floor(at / 3), at % 3];
        const part = tf.reshape(tf.slice(padded, [0, r, c, 0], [n, rows, columns, channels]), [-1, channels]);
        return tf.matMul(
          part,
          tf.reshape(tf.slice(kernel, [r, c, 0, 0], [1, 1, channels, outputs]), [channels, outputs]),
        );
      });
      const y = tf.relu(tf.add(tf.addN(products), bias));
      return tf.max(tf.max(tf.reshape(y, [n, rows / 2, 2, columns / 2, 2, outputs]), 4), 2);
    };
    const forward = (x) => {
      const h = stage(stage(tf.reshape(x, [-1, 28, 28, 1]), k1, b1), k2, b2);
      return last(tf.reshape(tf.transpose(h, [0, 3, 1, 2]), [-1, 784]));
    };
    return {
      loss: (x, y) => crossEntropy(tf, forward(x), y),
      infer: (x) => tf.max(forward(x)),
      note: 'convolution as nine products: conv2d has no gradient on this backend',
    };
  },
  vae(tf, v, { hidden, latent }) {
    const [down, middle, spread] = [
      v.linear('down', 784, hidden),
      v.linear('middle', hidden, latent),
      v.linear('spread', hidden, latent),
    ];
    const [up, out] = [v.linear('up', latent, hidden), v.linear('out', hidden, 784)];
    const forward = (x, noise) => {
      const h = tf.relu(down(x));
      const [m, s] = [middle(h), spread(h)];
      return [out(tf.relu(up(tf.add(m, tf.mul(noise, tf.exp(tf.mul(s, 0.5))))))), m, s];
    };
    return {
      loss: (x, noise) => {
        const [logits, m, s] = forward(x, noise);
        const apart = tf.sub(tf.add(tf.square(m), tf.exp(s)), tf.add(s, 1));
        return tf.add(tf.mean(tf.sub(tf.softplus(logits), tf.mul(logits, x))), tf.mul(tf.mean(apart), 0.5));
      },
      infer: (x, noise) => tf.max(forward(x, noise)[0]),
    };
  },
  'actor-critic'(tf, v, { hidden }) {
    const [first, actor, critic] = [
      v.linear('first', 4, hidden),
      v.linear('actor', hidden, 2),
      v.linear('critic', hidden, 1),
    ];
    const fixed = tf.customGrad((x) => ({ value: tf.clone(x), gradFunc: (dy) => tf.zerosLike(dy) }));
    return {
      loss: (seen, done, gains) => {
        const h = tf.relu(first(seen));
        const chosen = tf.sum(tf.mul(tf.logSoftmax(actor(h)), tf.oneHot(done, 2)), 1, true);
        const advantage = tf.sub(tf.expandDims(gains, 1), critic(h));
        const policy = tf.mean(tf.mul(chosen, fixed(advantage)));
        return tf.sub(tf.mul(tf.mean(tf.square(advantage)), 0.5), policy);
      },
      infer: (seen) => tf.max(actor(tf.relu(first(seen)))),
    };
  },
  lstm(tf, v, { inputs, hidden, outputs }) {
    const [wx, wh] = [
      v.matrix('lstm.weight_ih_l0', 4 * hidden, inputs),
      v.matrix('lstm.weight_hh_l0', 4 * hidden, hidden),
    ];
    const [bx, bh] = [v.plain('lstm.bias_ih_l0', 4 * hidden), v.plain('lstm.bias_hh_l0', 4 * hidden)];
    const head = v.linear('head', hidden, outputs);
    const forward = (x) => {
      const [batch, length] = x.shape;
      const projected = tf.add(tf.matMul(tf.reshape(x, [-1, inputs]), wx), tf.add(bx, bh));
      const steps = tf.split(tf.reshape(projected, [batch, length, 4 * hidden]), length, 1);
      let [h, c] = [tf.zeros([batch, hidden]), tf.zeros([batch, hidden])];
      for (const step of steps) {
        const gates = tf.add(tf.reshape(step, [batch, 4 * hidden]), tf.matMul(h, wh));
        const [i, f, g, o] = tf.split(gates, 4, 1);
        c = tf.add(tf.mul(tf.sigmoid(f), c), tf.mul(tf.sigmoid(i), tf.tanh(g)));
        h = tf.mul(tf.sigmoid(o), tf.tanh(c));
      }
      return head(h);
    };
    return { loss: (x, y) => crossEntropy(tf, forward(x), y), infer: (x) => tf.max(forward(x)) };
  },
  gpt(tf, v, { layers, width, heads, vocabulary, places }) {
    // The backend has no gradient of gather: rows are chosen by a product.
    const [tokens, positions] = [v.plain('tokens.weight', vocabulary, width), v.plain('places.weight', places, width)];
    const size = width / heads;
    const blocks = Array.from({ length: layers }, (_, at) => {
      const name = `blocks.${at}`;
      return {
        norm1: v.norm(`${name}.norm1`, width),
        into: v.matrix(`${name}.self_attn.in_proj_weight`, 3 * width, width),
        bias: v.plain(`${name}.self_attn.in_proj_bias`, 3 * width),
        out: v.linear(`${name}.self_attn.out_proj`, width, width),
        norm2: v.norm(`${name}.norm2`, width),
        up: v.linear(`${name}.linear1`, width, 4 * width),
        down: v.linear(`${name}.linear2`, 4 * width, width),
      };
    });
    const [last, head] = [v.norm('last', width), v.linear('head', width, vocabulary)];
    const gelu = (x) => tf.mul(tf.mul(x, 0.5), tf.add(tf.erf(tf.mul(x, Math.SQRT1_2)), 1));
    /** States [batch * length, width]. */
    const forward = (ids) => {
      const [batch, length] = ids.shape;
      const rows = tf.matMul(tf.oneHot(tf.reshape(ids, [-1]), vocabulary), tokens);
      const placed = tf.add(tf.reshape(rows, [batch, length, width]), tf.slice(positions, [0, 0], [length, width]));
      let x = tf.reshape(placed, [-1, width]);
      const mask = tf.tensor(
        Float32Array.from({ length: length * length }, (_, i) => (i % length > Math.floor(i / length) ? -1e9 : 0)),
        [length, length],
      );
      for (const block of blocks) {
        const all = tf.add(tf.matMul(block.norm1(x), block.into), block.bias);
        const apart = tf.transpose(tf.reshape(all, [batch, length, 3, heads, size]), [2, 0, 3, 1, 4]);
        const [q, k, values] = tf.split(apart, 3, 0).map((t) => tf.reshape(t, [batch, heads, length, size]));
        const scores = tf.add(tf.mul(tf.matMul(q, k, false, true), size ** -0.5), mask);
        const mixed = tf.transpose(tf.matMul(tf.softmax(scores), values), [0, 2, 1, 3]);
        x = tf.add(x, block.out(tf.reshape(mixed, [-1, width])));
        x = tf.add(x, block.down(gelu(block.up(block.norm2(x)))));
      }
      return last(x);
    };
    return {
      loss: (ids, following) => crossEntropy(tf, head(forward(ids)), tf.reshape(following, [-1])),
      infer: (ids) => {
        const [batch, length] = ids.shape;
        const states = tf.slice(
          tf.reshape(forward(ids), [batch, length, width]),
          [0, length - 1, 0],
          [batch, 1, width],
        );
        return tf.max(head(tf.reshape(states, [batch, width])));
      },
      note: 'rows of embeddings by a product: gather has no gradient on this backend',
    };
  },
  resnet18(tf, v, { width }, training) {
    if (training) throw new Unsupported(noConvolution);
    const conv = (name, norm, inputs, outputs, kernel, stride) => {
      const filters = v.filters(`${name}.weight`, outputs, inputs, kernel);
      const [scale, shift] = [v.plain(`${norm}.weight`, outputs), v.plain(`${norm}.bias`, outputs)];
      const [mean, variance] = [tf.zeros([outputs]), tf.ones([outputs])];
      const edge = (kernel - 1) / 2;
      const edges = [
        [0, 0],
        [edge, edge],
        [edge, edge],
        [0, 0],
      ];
      return (x) => {
        const y = tf.conv2d(edge === 0 ? x : tf.pad(x, edges), filters, stride, 'valid');
        return tf.batchNorm(y, mean, variance, shift, scale, 1e-5);
      };
    };
    const first = conv('0', '1', 3, width, 3, 1);
    const stages = Array.from({ length: 8 }, (_, at) => {
      const [stage, name] = [at >> 1, String(at + 3)];
      const outputs = width << stage;
      const halves = stage > 0 && at % 2 === 0;
      const inputs = halves ? outputs / 2 : outputs;
      const [a, b] = [
        conv(`${name}.conv1`, `${name}.bn1`, inputs, outputs, 3, halves ? 2 : 1),
        conv(`${name}.conv2`, `${name}.bn2`, outputs, outputs, 3, 1),
      ];
      const beside = halves ? conv(`${name}.shortcut.0`, `${name}.shortcut.1`, inputs, outputs, 1, 2) : (x) => x;
      return (x) => tf.relu(tf.add(b(tf.relu(a(x))), beside(x)));
    });
    const last = v.linear('13', 8 * width, 10);
    return {
      infer: (x) => {
        let h = tf.relu(first(tf.transpose(x, [0, 2, 3, 1])));
        for (const stage of stages) h = stage(h);
        return tf.max(last(tf.mean(h, [1, 2])));
      },
    };
  },
  unet() {
    throw new Unsupported(noConvolution);
  },
  pinn() {
    throw new Unsupported('tanh has no gradient of its gradient');
  },
};

/** A network with its variables, and a training step. */
function make(tf, tools, spec, training) {
  const variables = variablesOf(tf, tools);
  const network = makers[spec.network](tf, variables, spec, training);
  const optimizer = training ? tf.train.adam(learningRate, 0.9, 0.999, 1e-8) : null;
  const tensors = (inputs) =>
    inputs.map(({ data, shape }) => tf.tensor(data, shape, data instanceof Int32Array ? 'int32' : 'float32'));
  return {
    note: network.note,
    tensors,
    step: (inputs, wantLoss) => optimizer.minimize(() => network.loss(...inputs), wantLoss, variables.all),
    infer: (inputs) => tf.tidy(() => network.infer(...inputs)),
    dispose() {
      tf.dispose(variables.all);
      optimizer?.dispose();
    },
  };
}

/** Training steps at one size. */
export function prepareNetwork(tf, tools, { spec, batch, length }) {
  const draw = tools.inputsOf(spec, batch, length);
  const network = make(tf, tools, spec, true);
  const sets = Array.from({ length: tools.labelSets }, (_, set) => network.tensors(draw(batch, length, set)));
  let at = 0;
  const step = (wantLoss) => network.step(sets[at++ % sets.length], wantLoss);
  return {
    repeats: true,
    run(count) {
      for (let i = 0; i < count; i++) step(false);
    },
    probe: () =>
      [0, 1].map(() => {
        const loss = step(true);
        const [value] = loss.dataSync();
        loss.dispose();
        return value;
      }),
    ...(network.note === undefined ? {} : { note: network.note }),
    dispose() {
      network.dispose();
      tf.dispose(sets);
    },
  };
}

/** A network that is used at one size after the other. */
export function subject(tf, tools, work) {
  const { spec, varies, use } = work;
  if (use === 'generate') throw new Error('keeps no keys and values');
  const most = Math.max(...work.sizes);
  const draw = tools.inputsOf(spec, varies === 'batch' ? most : work.batch, varies === 'length' ? most : work.length);
  return () => {
    const network = make(tf, tools, spec, use === 'train');
    return {
      ...(network.note === undefined ? {} : { note: network.note }),
      use(size, at) {
        const [batch, length] = varies === 'batch' ? [size, work.length] : [work.batch, size];
        const inputs = network.tensors(draw(batch, length, at));
        const value = use === 'train' ? network.step(inputs, true) : network.infer(inputs);
        const [read] = value.dataSync();
        tf.dispose([...inputs, value]);
        return read;
      },
    };
  };
}
