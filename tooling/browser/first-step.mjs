/**
 * `node tooling/browser/first-step.mjs [VISITS] [webgpu]`: what the first step of a page costs in Chromium, by where its plans come from: they are made, the visitor
 * has kept them, or the page brings them. Milliseconds of the page's main thread, with loading the code, and of a clock. Visits take turns. With `webgpu`: on the
 * WebGPU adapter that Chromium has, taken for one of the profile `common`, so that both compute alike.
 */
import { bundle } from './bundle.mjs';
import { findChromium, startChromium } from './chromium.mjs';
import { recordTraining } from './record.mjs';
import { recordOnWebGpu } from './record-webgpu.mjs';
import { serve } from './server.mjs';

const onWebGpu = process.argv[3] === 'webgpu';

// Run in the page.
const webgpu = {
  made: "import('/webgpu-planned.js').then(({ runPlanned }) => runPlanned({ path: null, profile: 'common', only: true }))",
  brought: "import('/webgpu-planned.js').then(({ runPlanned }) => runPlanned({ only: true }))",
};
const processor = {
  made: "import('/pages/cnn-cpu.js').then(({ train }) => train(1))",
  kept: `import('/pages/cnn-kept.js').then(async ({ train, usePlanCache }) => {
    const plans = await usePlanCache();
    const losses = await train(1);
    globalThis.saved = () => plans.saved();
    return losses;
  })`,
  brought: `import('/pages/cnn-planned.js').then(async ({ train, usePlanFile }) => {
    await usePlanFile(fetch('/plans.bin'));
    return train(1);
  })`,
};

const kinds = onWebGpu ? webgpu : processor;
const pages = onWebGpu ? ['webgpu-planned'] : ['pages/cnn-cpu', 'pages/cnn-kept', 'pages/cnn-planned'];
const record = () => (onWebGpu ? recordOnWebGpu(['common']) : recordTraining([{ threads: 1 }]));

async function visit(context, url, body) {
  const page = await context.newPage();
  try {
    await page.goto(url);
    const session = await context.newCDPSession(page);
    await session.send('Performance.enable', { timeDomain: 'threadTicks' });
    const busy = async () => {
      const { metrics } = await session.send('Performance.getMetrics');
      return 1000 * metrics.find(({ name }) => name === 'TaskDuration').value;
    };
    const [before, start] = [await busy(), performance.now()];
    const [loss] = await page.evaluate(body);
    const clock = performance.now() - start;
    const thread = (await busy()) - before;
    await page.evaluate('globalThis.saved?.()');
    return { loss, thread, clock };
  } finally {
    await page.close();
  }
}

const shown = (values) => {
  const sorted = values.toSorted((a, b) => a - b);
  return `${sorted[0].toFixed(0)}/${sorted[sorted.length >> 1].toFixed(0)}`;
};

const visits = Number(process.argv[2] ?? 7);
const files = new Map([[onWebGpu ? '/webgpu.bin' : '/plans.bin', Buffer.from((await record()).file)]]);
for (const name of pages) {
  const made = await bundle([name]);
  for (const [path, text] of made.files) files.set(path, text);
}
const server = await serve(files);
const browser = await startChromium(findChromium());
try {
  const found = Object.fromEntries(Object.keys(kinds).map((kind) => [kind, []]));
  await visit(browser.context, server.url, kinds.kept ?? kinds.made);
  for (let i = 0; i < visits; i++)
    for (const [kind, body] of Object.entries(kinds)) found[kind].push(await visit(browser.context, server.url, body));
  for (const [kind, list] of Object.entries(found)) {
    const losses = new Set(list.map(({ loss }) => loss));
    console.log(
      `${kind}: main thread ${shown(list.map(({ thread }) => thread))} ms, clock ${shown(list.map(({ clock }) => clock))} ms (least/median of ${visits}), loss ${[...losses]}`,
    );
  }
} finally {
  await browser.close();
  await server.close();
}
