/** What the conformance suite checks of each operation: dtypes, orders of derivative, numbers of cases. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from '../workspace.mjs';

const conformance = join(root, 'packages/conformance');
const load = (file) => import(pathToFileURL(join(conformance, 'dist', file)).href);

/** The operation that a case outside the registry is about: the first word of its name. */
function opOf(name) {
  return name.split(/[ ,]/)[0];
}

function isFloat(dtype) {
  return dtype.includes('float');
}

function orderText(fd, torch) {
  if (fd === 0 && torch === 0) return '';
  return [fd > 0 ? `${fd} FD` : '', torch > 0 ? `${torch} PT` : ''].filter(Boolean).join(', ');
}

/** By operation: `{ dtypes, orders, goldens, cases, specs, notes, golden }`, none where it has no row. `slopes`: floats go in and come out. */
export async function coverageOf(names) {
  const { allCases } = await load('suites/all.js');
  const { operations } = await load('operations/registry.js');
  const { expand } = await load('expand.js');
  const { resultOf } = await load('spec.js');
  const { readGoldens } = await load('goldens/file.js');
  const goldens = await readGoldens(readFileSync(join(conformance, 'goldens/torch.bin.gz')));
  const target = { holds: () => true, computesDouble: true, tolerances: { forward: {} }, eagerly: (f) => f() };
  const rows = new Map(operations.map((row) => [row.name, row]));
  const found = new Map();
  /** The operation that a case of a row checks, by the case's name. */
  const owners = new Map();
  for (const name of names) {
    const row = rows.get(name);
    if (row === undefined) continue;
    const { specs, notes = {} } = row;
    for (const { name: of } of specs.flatMap((spec) => expand(spec, target))) owners.set(of, name);
    const slopes = specs.some((spec) => spec.dtypes.some((d) => isFloat(d) && isFloat(resultOf(spec, d))));
    found.set(name, { dtypes: new Set(), fd: 0, torch: 0, goldens: 0, cases: 0, specs, notes, golden: null, slopes });
  }
  for (const { name } of allCases(target, null, true)) {
    const [op, , ...rest] = name.split(' / ');
    const entry = found.get(owners.get(name) ?? opOf(op));
    if (entry === undefined) continue;
    entry.cases++;
    const kind = rest.at(-1);
    if (/gradient of gradient/.test(kind)) entry.fd = Math.max(entry.fd, 2);
    else if (/third derivative/.test(kind)) entry.fd = Math.max(entry.fd, 3);
    else if (/gradient/.test(kind)) entry.fd = Math.max(entry.fd, 1);
    else if (rest.length === 2) entry.dtypes.add(rest[0]);
  }
  for (const golden of goldens) {
    const entry = found.get(golden.op);
    if (entry === undefined) continue;
    entry.goldens++;
    entry.golden ??= golden;
    for (const dtype of golden.dtypes) entry.dtypes.add(dtype);
    entry.slopes ||= golden.dtypes.some(isFloat) && golden.results.some(([, kind]) => kind === 'same' || isFloat(kind));
    if (golden.by.length > 0) entry.torch = Math.max(entry.torch, golden.twice ? 2 : 1);
  }
  for (const entry of found.values()) {
    const none = entry.specs.length + entry.goldens > 0 && !entry.slopes ? 'none: no float in or out' : '';
    entry.orders = orderText(entry.fd, entry.torch) || none;
  }
  return found;
}
