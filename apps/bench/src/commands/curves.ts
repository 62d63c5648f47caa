/**
 * Measured curves as a picture: milliseconds of a kernel of four families on the CPU engine and on a device. Sizes go from 100 elements on, as
 * `calibrate()` measures them; thresholds are marked.
 *
 *     node apps/bench/dist/commands/curves.js [--device native|opencl|webgpu] [--budget 15000] [--threads N] --out FILE.svg
 *
 * The figures are printed too.
 */
import { writeFile } from 'node:fs/promises';
import { loadavg } from 'node:os';
import '@polygrad/backend-cpu';
import { calibrate, getBackend, type OperationFamily, setEngine } from '@polygrad/core';
import * as echarts from 'echarts';
import { optionsOf } from './usage.ts';

const panels = [
  ['elementwise', 'one addition: elements of the result'],
  ['reduction', 'a sum: elements read'],
  ['product', 'a product of square matrices: products of two numbers'],
  ['convolution', '3 × 3, 8 channels: products of two numbers'],
] as const satisfies readonly (readonly [OperationFamily, string])[];

const values = optionsOf(import.meta.url, {
  device: { type: 'string', default: 'native' },
  budget: { type: 'string', default: '15000' },
  threads: { type: 'string', default: '0' },
  out: { type: 'string' },
});
const name = values.device;
const threads = Number(values.threads);
const options = threads > 0 ? { threads } : {};
const out = values.out ?? `${name}.svg`;
await import(`@polygrad/backend-${name}`);
const cpu = await setEngine('cpu', options);
const device = await getBackend(name)!.create(name === 'native' ? options : {});
const load = loadavg()[0]!.toFixed(1);
const thresholds = await calibrate({ device, budget: Number(values.budget), store: null });
const { costs } = thresholds;

const [width, height] = [920, 640];
const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width, height });
const left = (i: number): number => 60 + (i % 2) * 450;
const top = (i: number): number => 90 + (i >> 1) * 280;
const power = { formatter: (value: number): string => value.toExponential(0).replace('+', ''), hideOverlap: true };
chart.setOption({
  animation: false,
  backgroundColor: '#ffffff',
  title: [
    { text: `cpu: ${cpu.device}  |  ${name}: ${device.device}`, left: 'center', top: 6, textStyle: { fontSize: 13 } },
    ...panels.map(([family, unit], i) => ({
      text: family,
      subtext: `milliseconds; ${unit}`,
      left: left(i),
      top: top(i) - 52,
      itemGap: 2,
      textStyle: { fontSize: 13 },
    })),
  ],
  legend: { bottom: 4, selectedMode: false, data: ['cpu', name] },
  color: ['#2166ac', '#d6604d'],
  grid: panels.map((_, i) => ({ left: left(i), top: top(i), width: 370, height: 180 })),
  xAxis: panels.map((_, i) => ({ type: 'log', gridIndex: i, axisLabel: power })),
  yAxis: panels.map((_, i) => ({ type: 'log', gridIndex: i, axisLabel: power })),
  series: panels.flatMap(([family], i) => {
    const threshold = thresholds.get(family);
    return (['cpu', 'device'] as const).map((side) => ({
      name: side === 'cpu' ? 'cpu' : name,
      type: 'line',
      xAxisIndex: i,
      yAxisIndex: i,
      symbolSize: 5,
      data: costs[side].families[family],
      ...(side === 'device' &&
        Number.isFinite(threshold) && {
          markLine: {
            silent: true,
            symbol: 'none',
            lineStyle: { color: '#777777' },
            label: { formatter: 'threshold', fontSize: 10 },
            data: [{ xAxis: threshold }],
          },
        }),
    }));
  }),
});
// Names of elements are counted through the program: another run gives other ones.
const names = new Map<string, string>();
const svg = chart.renderToSVGString().replace(/zr\d+-(\w+?)-?\d+\b/g, (found) => {
  if (!names.has(found)) names.set(found, `e${names.size}`);
  return names.get(found)!;
});
chart.dispose();
await writeFile(out, svg);

process.stdout.write(`cpu ${cpu.device}, ${name} ${device.device}, load ${load} to ${loadavg()[0]!.toFixed(1)}\n`);
for (const [family] of panels) {
  process.stdout.write(`${family}, threshold ${thresholds.get(family).toPrecision(2)}\n`);
  const there = new Map(costs.device.families[family]);
  for (const [size, ms] of costs.cpu.families[family])
    process.stdout.write(
      `  ${size.toExponential(1).padStart(8)} ${ms.toPrecision(3).padStart(9)} ${(there.get(size)?.toPrecision(3) ?? '').padStart(9)}\n`,
    );
}
process.exit(0);
