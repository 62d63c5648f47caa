/** Charts as SVG text, drawn by echarts without a browser. */
import * as echarts from 'echarts';

/** A point of the loss curve. */
export interface LossPoint {
  /** In epochs: 1.5 is half-way through the second. */
  readonly at: number;
  readonly loss: number;
}

function draw(option: echarts.EChartsCoreOption, width: number, height: number): string {
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width, height });
  try {
    chart.setOption({ animation: false, backgroundColor: '#ffffff', ...option });
    // Names of elements are counted through the whole program; counted from 0 in each chart, equal charts are equal text.
    const names = new Map<string, string>();
    return chart.renderToSVGString().replace(/zr\d+-(\w+?)-?\d+\b/g, (name) => {
      if (!names.has(name)) names.set(name, `e${names.size}`);
      return names.get(name)!;
    });
  } finally {
    chart.dispose();
  }
}

/** Training loss along the steps, and test accuracy after every epoch. */
export function trainingChart(losses: readonly LossPoint[], accuracies: readonly number[], title: string): string {
  const lowest = Math.floor(Math.min(...accuracies.map((accuracy) => 100 * accuracy), 100));
  return draw(
    {
      title: { text: title, left: 'center', textStyle: { fontSize: 15 } },
      color: ['#2166ac', '#d6604d'],
      legend: { bottom: 4, itemGap: 24, selectedMode: false },
      grid: { left: 60, right: 60, top: 50, bottom: 75 },
      xAxis: { type: 'value', name: 'epochs', nameLocation: 'middle', nameGap: 26, min: 0, max: accuracies.length },
      yAxis: [
        { type: 'value', name: 'loss', min: 0 },
        { type: 'value', name: 'accuracy %', min: Math.max(0, lowest - 1), max: 100, splitLine: { show: false } },
      ],
      series: [
        { name: 'training loss', type: 'line', showSymbol: false, data: losses.map(({ at, loss }) => [at, loss]) },
        {
          name: 'test accuracy',
          type: 'line',
          yAxisIndex: 1,
          symbolSize: 8,
          data: accuracies.map((accuracy, epoch) => [epoch + 1, 100 * accuracy]),
        },
      ],
    },
    720,
    440,
  );
}

/**
 * How often each class was taken for each.
 *
 * @param counts `counts[label][prediction]`
 */
export function confusionChart(counts: readonly (readonly number[])[], title: string): string {
  const names = counts.map((_, index) => String(index));
  const totals = counts.map((row) =>
    Math.max(
      1,
      row.reduce((sum, count) => sum + count, 0),
    ),
  );
  const cells = counts.flatMap((row, label) =>
    row.map((count, prediction) => ({
      value: [prediction, label, count / totals[label]!],
      label: { show: true, formatter: String(count), color: count / totals[label]! > 0.5 ? '#ffffff' : '#222222' },
    })),
  );
  return draw(
    {
      title: { text: title, left: 'center', textStyle: { fontSize: 15 } },
      grid: { left: 60, right: 20, top: 45, bottom: 50 },
      xAxis: { type: 'category', data: names, name: 'predicted', nameLocation: 'middle', nameGap: 28 },
      yAxis: { type: 'category', data: names, name: 'label', nameLocation: 'middle', nameGap: 32, inverse: true },
      visualMap: { min: 0, max: 1, show: false, inRange: { color: ['#ffffff', '#c6dbef', '#4292c6', '#08306b'] } },
      series: [{ type: 'heatmap', data: cells, itemStyle: { borderColor: '#dddddd', borderWidth: 1 } }],
    },
    600,
    600,
  );
}
