// usage: node first-step.mjs ROUNDS before=/dir after=/dir   pages built from bundles with rolldown, served fresh
import { pathToFileURL } from 'node:url';
const [, , rounds, page, ...roots] = process.argv;
const base = roots[0].split('=')[1];
const { startChromium, findChromium } = await import(pathToFileURL('/tmp/wt/page/tooling/browser/chromium.mjs'));
const { serve, isolation } = await import(pathToFileURL('/tmp/wt/page/tooling/browser/server.mjs'));
const { rolldown } = await import('rolldown');
const sites = [];
for (const r of roots) {
  const [name, root] = r.split('=');
  const made = await rolldown({
    input: `${root}/tooling/browser/pages/${page}.mjs`,
    platform: 'browser',
    preserveEntrySignatures: 'allow-extension',
    resolve: { conditionNames: ['@polygrad/source', 'production', 'browser', 'import', 'default'] },
  });
  const { output } = await made.generate({ format: 'es', minify: true, entryFileNames: 'main.js' });
  const files = new Map(output.filter((c) => c.type === 'chunk').map((c) => ['/' + c.fileName, c.code]));
  const pre = output
    .find((c) => c.fileName === 'main.js')
    .imports.map((i) => `<link rel="modulepreload" href="/${i}">`)
    .join('');
  files.set(
    '/',
    `<!doctype html><link rel="icon" href="data:,">${pre}<script type="module">import { train } from '/main.js'; train(1).then((l) => { window.done = [performance.now(), l[0]]; });</script>`,
  );
  sites.push({ name, files });
}
const browser = await startChromium(findChromium());
const times = new Map();
for (const [net, headers] of [['local', {}]]) {
  const servers = [];
  for (const s of sites)
    servers.push({ name: s.name, ...(await serve(s.files, { ...headers, 'Cache-Control': 'no-store' })) });
  for (let i = 0; i < Number(rounds); i++)
    for (const s of i % 2 ? servers : [...servers].reverse()) {
      const p = await browser.context.newPage();
      const cdp = await browser.context.newCDPSession(p);
      await cdp.send('Network.enable');
      await cdp.send('Network.setCacheDisabled', { cacheDisabled: true });
      if (net === 'slow')
        await cdp.send('Network.emulateNetworkConditions', {
          offline: false,
          latency: 100,
          downloadThroughput: (3e6 / 8) * 3,
          uploadThroughput: 1e6 / 8,
        });
      await p.goto(s.url);
      const [t] = await p.waitForFunction(() => window.done).then((h) => h.jsonValue());
      (times.get(`${net} ${s.name}`) ?? times.set(`${net} ${s.name}`, []).get(`${net} ${s.name}`)).push(t);
      await p.close();
    }
  for (const s of servers) await s.close();
}
const med = (v) => [...v].sort((a, b) => a - b)[v.length >> 1];
for (const net of ['local', 'isolated', 'slow']) {
  const b = times.get(net + ' before'),
    a = times.get(net + ' after');
  if (!a) continue;
  const q = a.map((x, i) => x / b[i]).sort((x, y) => x - y);
  console.log(
    net,
    'min',
    Math.min(...b).toFixed(0),
    Math.min(...a).toFixed(0),
    'median',
    med(b).toFixed(0),
    med(a).toFixed(0),
    'ratio after:before median',
    q[q.length >> 1].toFixed(3),
    'quartiles',
    q[q.length >> 2].toFixed(2),
    q[(3 * q.length) >> 2].toFixed(2),
    'n',
    q.length,
  );
}
await browser.close();
