/** How many kernels an operation makes: planned on the null engine, which has no device, for the first small case of the suite. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from '../workspace.mjs';

const load = (file) => import(pathToFileURL(join(root, file)).href);

/** By operation: 'value / value and gradients', the second only where the suite differentiates. */
export async function measureKernels(coverage) {
  const core = await load('packages/core/dist/index.js');
  const { createNullEngine } = await load('packages/testing/dist/null-engine.js');
  const { callGolden, goldenArguments } = await load('packages/conformance/dist/suites/goldens.js');
  const { draw } = await load('packages/conformance/dist/expand.js');
  const { makeTensor } = await load('packages/conformance/dist/layouts.js');
  const every = [
    ...'float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool'.split(' '),
  ];
  await core.setEngine(createNullEngine({ dtypes: new Set(every) }));

  /** `{ inputs, of, run }` of the first case that tells something. */
  const example = ({ specs, golden }) => {
    const spec = specs.find((s) => s.gradient) ?? specs[0];
    if (spec !== undefined) {
      const size = (i) => draw(spec, i).reduce((n, a) => n + a.data.length, 0);
      const instance = spec.instances.find((i) => i.small && size(i) > 4) ?? spec.instances.at(-1);
      const dtype = spec.dtypes[0];
      const inputs = draw(spec, instance).map((a, i) => makeTensor(a, spec.inputDTypes?.[i] ?? dtype));
      return { inputs, of: spec.gradient?.of ?? [], run: (all) => spec.run(all, instance.options ?? {}) };
    }
    if (golden === null) return null;
    const inputs = goldenArguments(golden, golden.dtypes[0]);
    return { inputs, of: golden.by, run: (all) => callGolden(golden, all) };
  };
  const count = (f) => {
    core.flush();
    const before = core.stats().kernels;
    core.scope(() => {
      const results = [f()].flat(3).flatMap((r) => (core.isTensor(r) ? [r] : Object.values(r ?? {}).flat(2)));
      core.flush();
      for (const r of results) core.isTensor(r) && r.dispose();
    });
    return core.stats().kernels - before;
  };
  const found = new Map();
  for (const [name, entry] of coverage) {
    const one = example(entry);
    if (one === null) continue;
    const { inputs, of, run } = one;
    try {
      let waits = false;
      const value = count(() => {
        const result = run(inputs);
        if (!(result instanceof Promise)) return result;
        // Its size depends on data, which this engine does not have.
        waits = true;
        result.catch(() => {});
        return [];
      });
      if (waits) continue;
      let text = String(value);
      if (of.length > 0) {
        const slopes = count(() => {
          const place = (xs) => inputs.map((t, i) => (of.includes(i) ? xs[of.indexOf(i)] : t));
          const first = (r) =>
            core.isTensor(r)
              ? r
              : Object.values(r)
                  .flat(2)
                  .find((t) => t.dtype.includes('float'));
          return core.valueAndGrad((...xs) => core.sum(first(run(place(xs)))), { argnums: of.map((_, i) => i) })(
            ...of.map((i) => inputs[i]),
          );
        });
        text += ` / ${slopes}`;
      }
      found.set(name, text);
    } finally {
      for (const t of inputs) t.dispose();
    }
  }
  return found;
}
