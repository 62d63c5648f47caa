/** What jax-js does for the benchmarks, on whichever of its backends is chosen: in Node (jax_peer.mjs) and in a page. */

const rates = { sgd: 0.1, adam: 1e-3 };

class Unsupported extends Error {
  name = 'Unsupported';
}

/** Work of the harness, ready to be measured. */
export function prepare(jax, tools, work) {
  const { numpy: np, nn } = jax;
  const input = (seed, low, high, ...shape) =>
    np
      .array(
        tools.fill(
          seed,
          shape.reduce((p, d) => p * d, 1),
          low,
          high,
        ),
      )
      .reshape(shape);
  const pair = (n) => [input(1, -1, 1, n), input(2, -1, 1, n)];
  switch (work.kind) {
    case 'gemm': {
      const operands = [input(1, -1, 1, work.m, work.k), input(2, -1, 1, work.k, work.n)];
      return operation(
        jax,
        tools,
        operands,
        jax.jit((a, b) => np.matmul(a, b)),
      );
    }
    case 'add':
      return operation(
        jax,
        tools,
        pair(work.n),
        jax.jit((a, b) => a.add(b)),
      );
    case 'small-add':
    case 'round-trip':
      return operation(jax, tools, pair(work.n), (a, b) => a.add(b), work.kind === 'round-trip');
    case 'chain':
      return operation(
        jax,
        tools,
        pair(work.n),
        jax.jit((a, b) => nn.relu(a.ref.mul(b.ref).add(a)).mul(0.5).sub(b)),
      );
    case 'sum':
      return operation(
        jax,
        tools,
        [input(3, 0, 1, work.n)],
        jax.jit((a) => a.sum()),
      );
    case 'mlp':
    case 'cnn':
      return training(jax, tools, work, input);
    case 'softmax':
    case 'layer-norm': {
      const side = Math.round(Math.sqrt(work.n));
      const f = work.kind === 'softmax' ? (a) => nn.softmax(a, 1) : (a) => nn.standardize(a, 1, { epsilon: 1e-5 });
      return operation(jax, tools, [input(1, -1, 1, side, side)], jax.jit(f));
    }
    case 'conv': {
      const { batch, channels, side, filters } = work;
      const operands = [input(1, -1, 1, batch, channels, side, side), input(2, -1, 1, filters, channels, 3, 3)];
      return operation(
        jax,
        tools,
        operands,
        jax.jit((a, b) => jax.lax.convGeneralDilated(a, b, [1, 1], 'SAME')),
      );
    }
    default:
      throw new Unsupported('not comparable: recording is tracing under jit here');
  }
}

function operation(jax, tools, operands, f, read = false) {
  return {
    async run(count) {
      for (let i = 0; i < count; i++) {
        const y = f(...operands.map((t) => t.ref));
        if (read) await y.data();
        else {
          await jax.blockUntilReady(y);
          y.dispose();
        }
      }
    },
    async probe() {
      const values = await f(...operands.map((t) => t.ref)).data();
      return values.length === 1 ? [values[0]] : tools.probePositions(values.length).map((p) => values[p]);
    },
    dispose: () => {
      for (const t of operands) t.dispose();
    },
  };
}

function training(jax, tools, work, input) {
  const { numpy: np, nn, tree } = jax;
  const { batch } = work;
  const weight = (seed, fanIn, ...shape) => input(seed, -(fanIn ** -0.5), fanIn ** -0.5, ...shape);
  let x;
  let params;
  let forward;
  if (work.kind === 'mlp') {
    x = input(10, 0, 1, batch, 784);
    params = { w1: weight(11, 784, 128, 784), b1: np.zeros([128]), w2: weight(12, 128, 10, 128), b2: np.zeros([10]) };
    forward = (p, x) => np.matmul(nn.relu(np.matmul(x, np.transpose(p.w1)).add(p.b1)), np.transpose(p.w2)).add(p.b2);
  } else {
    // Channels last and nine shifted products: ten times as fast here as its own convGeneralDilated and its gradient.
    x = input(20, 0, 1, batch, 28, 28, 1);
    params = {
      k1: weight(21, 9, 8, 1, 3, 3),
      b1: np.zeros([8]),
      k2: weight(22, 72, 16, 8, 3, 3),
      b2: np.zeros([16]),
      w: weight(23, 784, 10, 784),
      b: np.zeros([10]),
    };
    const conv = (h, k, b) => {
      const [n, rows, columns, channels] = h.shape;
      const padded = np.pad(h, [
        [0, 0],
        [1, 1],
        [1, 1],
        [0, 0],
      ]);
      let y = b;
      for (let i = 0; i < 3; i++) {
        for (let j = 0; j < 3; j++) {
          const part = padded.ref
            .slice([], [i, i + rows], [j, j + columns], [])
            .reshape([n * rows * columns, channels]);
          y = np.matmul(part, np.transpose(k.ref.slice([], [], i, j))).add(y);
        }
      }
      const outputs = k.shape[0];
      padded.dispose();
      k.dispose();
      return np.max(nn.relu(y).reshape([n, rows / 2, 2, columns / 2, 2, outputs]), [2, 4]);
    };
    // Channels first before the last layer, so that its weights mean the same as elsewhere.
    forward = (p, x) => {
      const features = np.transpose(conv(conv(x, p.k1, p.b1), p.k2, p.b2), [0, 3, 1, 2]);
      return np.matmul(features.reshape([batch, 784]), np.transpose(p.w)).add(p.b);
    };
  }
  const loss = (p, x, target) =>
    nn
      .logSoftmax(forward(p, x))
      .mul(target)
      .sum()
      .mul(-1 / batch);
  const zeros = () => tree.map((t) => np.zeros(t.shape), params);
  const adam = work.optimizer === 'adam';
  let state = adam ? { m: zeros(), v: zeros() } : {};
  const update = jax.jit((p, state, scale, x, target) => {
    const [value, g] = jax.valueAndGrad(loss)(tree.ref(p), x, target);
    if (!adam) {
      scale.dispose();
      return [value, tree.map((p, g) => p.sub(g.mul(rates.sgd)), p, g), state];
    }
    const m = tree.map((m, g) => m.mul(0.9).add(g.ref.mul(0.1)), state.m, g);
    const v = tree.map((v, g) => v.mul(0.999).add(np.square(g).mul(0.001)), state.v, g);
    // scale = [rate / (1 - 0.9^t), 1 / (1 - 0.999^t)]
    const [rate, second] = [scale.ref.slice(0), scale.slice(1)];
    const moved = tree.map(
      (p, m, v) => p.sub(m.mul(rate.ref).div(np.sqrt(v.mul(second.ref)).add(1e-8))),
      p,
      tree.ref(m),
      tree.ref(v),
    );
    rate.dispose();
    second.dispose();
    return [value, moved, { m, v }];
  });
  const targets = Array.from({ length: tools.labelSets }, (_, set) => {
    const hot = new Float32Array(batch * 10);
    for (let i = 0; i < batch; i++) hot[i * 10 + tools.label(set, i)] = 1;
    return np.array(hot).reshape([batch, 10]);
  });
  let at = 0;
  const step = async () => {
    const target = targets[at++ % targets.length];
    const scale = np.array([rates.adam / (1 - 0.9 ** at), 1 / (1 - 0.999 ** at)]);
    let value;
    [value, params, state] = update(params, state, scale, x.ref, target.ref);
    await jax.blockUntilReady([params, state]);
    return value;
  };
  return {
    async run(count) {
      for (let i = 0; i < count; i++) (await step()).dispose();
    },
    async probe() {
      const losses = [];
      for (let i = 0; i < targets.length; i++) losses.push((await (await step()).data())[0]);
      return losses;
    },
    ...(work.kind === 'cnn' ? { note: 'convolution as nine products: faster than its own' } : {}),
    dispose() {
      x.dispose();
      for (const t of targets) t.dispose();
      tree.dispose(params);
      tree.dispose(state);
    },
  };
}
