import * as pg from '@polygrad/core'; import * as nn from '@polygrad/nn'; 
const { createCpuEngine } = await import('@polygrad/backend-cpu');
await pg.setEngine(await createCpuEngine({ threads: 1 }));
const { tensor, stats, scope } = pg;
const [V, D, H] = [65, 32, 4];
const vocab = new nn.Embedding(V, D), place = new nn.Embedding(128, D), out = new nn.Linear(D, V);
const blocks = [new nn.TransformerBlock(D, H, { causal: true, dropout: Number(process.env.DROP ?? 0) }), new nn.TransformerBlock(D, H, { causal: true, dropout: Number(process.env.DROP ?? 0) })];
class Net extends nn.Module { constructor() { super(); this.vocab = vocab; this.place = place; this.out = out; this.blocks = blocks; }
 forward(x) { let h = vocab.forward(x).add(place.forward(pg.arange(x.shape[1], { dtype: 'int32' }))); for (const b of blocks) h = b.forward(h); return out.forward(h); } }
const net = new Net(); const opt = new nn.Adam(net.parameters(), { lr: 1e-3 });
let seed = 1; const rnd = (n) => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) % n;
pg.setDynamicSizes(process.argv[2] ?? 'automatic');
const flat = process.env.FLAT === '1';
const cpu0 = process.cpuUsage();
for (let i = 0; i < 24; i++) {
  const [b, l] = [2 + rnd(14), 9 + rnd(50)];
  const before = stats(); const t = process.cpuUsage();
  let loss;
  scope(() => {
    const data = Array.from({ length: b * l }, () => rnd(V));
    const x = tensor(data, { dtype: 'int32', shape: [b, l] }), y = tensor(data.map((k) => (k + 1) % V), { dtype: 'int32', shape: flat ? [b * l] : [b, l] });
    const r = nn.lossAndGrad(net, () => pg.crossEntropy(net.forward(x).reshape([b * l, V]), y.reshape([b * l])));
    opt.step(r.grads); loss = pg.keep(r.value ?? r.loss);
  });
  const v = loss ? (await loss.data())[0] : 0; loss?.dispose();
  const c = process.cpuUsage(t); const a = stats();
  console.log(b, l, 'plans', a.plansMade - before.plansMade, 'binds', a.binds - before.binds, 'ms', ((c.user + c.system) / 1000).toFixed(0), v.toFixed(4));
}
const c = process.cpuUsage(cpu0); console.log('cpu', ((c.user + c.system) / 1000).toFixed(0), JSON.stringify(stats()).slice(0, 300));
process.exit(0);
