/** The report as a document: who ran, the goals and whether they were met, all figures, kernels of the steps, remarks. */
import { ratio } from './cases.mjs';

const figureOf = (row, who) => row.by[who]?.value;
const four = (value) => value.toPrecision(4);
const percent = (value) => `${(100 * value).toFixed(0)} %`;

function table(head, rows) {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** The bandwidth that others are compared with: the best copy that anybody made on the card. */
export function copyOf({ rows, main }) {
  const row = rows.find(({ name }) => name === 'copy on the card');
  const found = [main, 'torch'].map((who) => row?.by[who]?.value).filter((value) => value !== undefined);
  return found.length === 0 ? undefined : Math.max(...found);
}

/** What became of a goal: `met` is null where there was nothing to judge by. */
export function judged(row, report) {
  const { goal, figure } = row;
  const own = figureOf(row, report.main);
  if (goal === undefined) return undefined;
  if (goal.most !== undefined)
    return {
      wanted: `at most ${goal.most} ${figure}`,
      is: own === undefined ? '' : four(own),
      met: own === undefined ? null : own <= goal.most,
    };
  const [least, base, text] =
    goal.ofCopy === undefined
      ? [goal.overTorch, figureOf(row, 'torch'), 'PyTorch']
      : [goal.ofCopy, copyOf(report), 'the copy'];
  const is = own === undefined || base === undefined ? undefined : ratio(figure, own, base);
  return {
    wanted: `${percent(least)} of ${text}`,
    is: is === undefined ? '' : percent(is),
    met:
      is === undefined ? (own === undefined && row.by[report.main]?.failed !== undefined ? false : null) : is >= least,
  };
}

function goalsOf(report) {
  const rows = report.rows.flatMap((row) => {
    const found = judged(row, report);
    return found === undefined ? [] : [[row.name, found]];
  });
  const count = (met) => rows.filter(([, found]) => found.met === met).length;
  const word = { true: 'met', false: '**missed**', null: 'not judged' };
  const lines = rows.map(([name, { wanted, is, met }]) => [name, wanted, is, word[met]]);
  return `Goals: ${count(true)} met, ${count(false)} missed, ${count(null)} not judged.\n\n${table(['case', 'wanted', 'is', ''], lines)}`;
}

function figuresOf({ rows, main }) {
  const who = [...new Set(rows.flatMap(({ by }) => Object.keys(by)))];
  const over = (row, peer) => {
    const [own, other] = [figureOf(row, main), figureOf(row, peer)];
    return own === undefined || other === undefined ? '' : ratio(row.figure, own, other).toFixed(2);
  };
  const peers = ['torch', 'cpu'].filter((peer) => peer !== main && who.includes(peer));
  const shown = (found) =>
    found === undefined
      ? ''
      : found.failed !== undefined
        ? `failed: ${found.failed.replaceAll('|', '/')}`
        : four(found.value);
  const cold = (row) => (row.by[main]?.cold === undefined ? '' : (1e3 * row.by[main].cold).toFixed(0));
  return table(
    ['case', 'figure', ...who, ...peers.map((peer) => `over ${peer}`), 'first, ms'],
    rows.map((row) => [
      row.name,
      row.figure,
      ...who.map((w) => shown(row.by[w])),
      ...peers.map((peer) => over(row, peer)),
      cold(row),
    ]),
  );
}

/** The ten longest kernels of each step. */
function profilesOf({ profiles }) {
  return profiles
    .map(({ name, milliseconds, submits, kernels }) => {
      const sum = kernels.reduce((total, { ms }) => total + ms, 0);
      const rate = (amount, ms) => (ms > 0 ? (amount / ms / 1e6).toFixed(0) : '');
      const lines = kernels
        .slice(0, 10)
        .map(({ kernel, runs, ms, flops, bytes }) => [kernel, runs, ms.toFixed(4), rate(flops, ms), rate(bytes, ms)]);
      const title = `${name}: ${milliseconds.toFixed(2)} ms measured, kernels ${sum.toFixed(2)} ms, ${submits} batches`;
      return `\n${title}\n\n${table(['kernel', 'runs', 'ms', 'GFLOP/s', 'GB/s'], lines)}\n`;
    })
    .join('');
}

export function documentOf(report) {
  const { machine, devices, conformance, notes, options } = report;
  const list = (entries) => entries.map((entry) => `- ${entry}\n`).join('');
  return `# On a card, ${report.date}

${list([
  `machine: ${machine.card}; Node ${machine.node}, ${machine.cores} cores, ${machine.system}`,
  ...Object.entries(devices).map(([name, device]) => `${name}: ${device}`),
  ...Object.entries(conformance).map(([name, last]) => `conformance ${name} (one of ${options.sample}): ${last}`),
  `${report.seconds} s in all`,
])}${options.tiny ? '\nEverything was small: the figures mean nothing.\n' : ''}
${goalsOf(report)}

Medians. "over torch", "over cpu": how many times as fast as PyTorch on the card and as our own CPU engine; "first": the first run, compiling included.

${figuresOf(report)}
${profilesOf(report)}${notes.length > 0 ? `\nRemarks:\n\n${list(notes)}` : ''}`;
}
