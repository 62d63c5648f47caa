/**
 * What the first group of a kernel does, without a card: an interpreter of PTX counts its instructions, the sectors of device memory and the turns of
 * the banks of shared memory (tooling/cuda-sim/ptx/counts.cc). From those and published facts of a card come bounds, no times.
 *
 * A bound says what a kernel cannot exceed. Latencies, caches and the scheduler's choices are in none.
 */
import { spawnSync } from 'node:child_process';
import { buildPtxRun } from '../../tooling/cuda-sim/ptx/build.mjs';

/**
 * Facts of cards by compute capability (CUDA C Programming Guide, "Technical Specifications per Compute Capability"; throughputs of arithmetic
 * instructions; data sheets for clocks and bandwidth). `fma`: float32 products of a multiprocessor in a clock; `products`: by tiles of 16-bit floats, without
 * sparsity; `memory`: its share of the bytes that device memory gives in a clock.
 */
export const cards = {
  75: { name: 'T4', multiprocessors: 40, warps: 32, shared: 64, perGroup: 64, fma: 64, products: 512, memory: 5.0 },
  80: {
    name: 'A100',
    multiprocessors: 108,
    warps: 64,
    shared: 164,
    perGroup: 163,
    fma: 64,
    products: 1024,
    memory: 10.2,
  },
  86: {
    name: 'RTX 3090',
    multiprocessors: 82,
    warps: 48,
    shared: 100,
    perGroup: 99,
    fma: 128,
    products: 512,
    memory: 6.7,
  },
  89: {
    name: 'RTX 4090',
    multiprocessors: 128,
    warps: 48,
    shared: 100,
    perGroup: 99,
    fma: 128,
    products: 512,
    memory: 3.1,
  },
  90: {
    name: 'H100',
    multiprocessors: 132,
    warps: 64,
    shared: 228,
    perGroup: 227,
    fma: 128,
    products: 1024,
    memory: 14.5,
  },
  100: {
    name: 'B200',
    multiprocessors: 148,
    warps: 64,
    shared: 228,
    perGroup: 227,
    fma: 128,
    products: 1024,
    memory: 29,
  },
  120: {
    name: 'RTX 5090',
    multiprocessors: 170,
    warps: 48,
    shared: 100,
    perGroup: 99,
    fma: 128,
    products: 512,
    memory: 4.4,
  },
};

/** Instructions of a warp that a multiprocessor begins in a clock, and lanes that go together in one. */
const schedulers = 4;
const lanes = 32;

/** Products of a tile of matrices, by its name. */
function productsOf(text) {
  const tile = /^mma\.sync\.aligned\.m(\d+)n(\d+)k(\d+).*\.(f16|bf16|tf32)\./.exec(text);
  if (tile === null) return 0;
  const [, m, n, k, kind] = tile;
  // Tiles of TF32 take twice as long as those of 16 bits.
  return Number(m) * Number(n) * Number(k) * (kind === 'tf32' ? 2 : 1);
}

/** Launches the first group of a kernel on buffers of zeros: a line for each instruction that ran; null where it cannot be run. */
export function runFirstGroup(kernel, program) {
  const { path, missing } = buildPtxRun();
  if (path === undefined) throw new Error(missing);
  const words = [];
  const word = (x) => words.push(Buffer.from(Uint32Array.of(x).buffer));
  const block = (bytes) => {
    word(bytes.length);
    words.push(Buffer.from(bytes));
  };
  const bytes = program.params.map(({ arg }, i) => arg.length * kernel.params[i].bytes);
  word(bytes.length);
  for (const length of bytes) word(length);
  word(1);
  block(kernel.text);
  block(kernel.entry);
  for (const x of [1, 1, 1, ...kernel.group, kernel.dynamicSharedBytes, 0]) word(x);
  word(kernel.params.length + kernel.scalars.length);
  for (const [i, length] of bytes.entries()) for (const x of [1, i, 0, length]) word(x);
  for (const { bytes: length } of kernel.scalars) {
    word(0);
    block(new Uint8Array(length));
  }
  const { stdout, status, stderr } = spawnSync(path, ['--counts'], {
    input: Buffer.concat(words),
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  });
  if (status !== 0) throw new Error(`ptx-run: ${stderr}`);
  const failed = /^launch 1 failed: (.*)$/m.exec(stdout);
  if (failed !== null) throw new Error(failed[1]);
  return stdout
    .split('\n')
    .filter((l) => /^\d/.test(l))
    .map((l) => {
      const [, warps, active, space, size, done, least, text] = /^(\d+) (\d+) (.) (\d+) (\d+) (\d+) (.*)$/.exec(l);
      return {
        warps: Number(warps),
        lanes: Number(active),
        space,
        bytes: Number(size),
        done: Number(done),
        least: Number(least),
        text,
      };
    });
}

const sum = (list, of) => list.reduce((n, x) => n + of(x), 0);

/** What a kernel's groups can do on a card, from what its first group did and what the assembler says. */
export function estimate(rows, kernel, registers, capability) {
  const card = cards[capability];
  const threads = kernel.group[0] * kernel.group[1] * kernel.group[2];
  const warps = Math.ceil(threads / lanes);
  const byRegisters = Math.floor(65536 / (Math.ceil((registers * lanes) / 256) * 256) / warps);
  const byShared = Math.floor((card.shared * 1024) / (kernel.sharedBytes + 1024));
  const together = Math.max(0, Math.min(32, Math.floor(card.warps / warps), byRegisters, byShared));
  const groups = kernel.grid[0] * kernel.grid[1] * kernel.grid[2];
  const isFma = ({ text }) => /^@?!?%?\w* ?(fma|add|sub|mul)\.rn\.f32/.test(text);
  const clocks = {
    issue: sum(rows, (r) => r.warps) / schedulers,
    fma: (sum(rows.filter(isFma), (r) => r.warps) * lanes) / card.fma,
    tiles: sum(rows, (r) => r.warps * productsOf(r.text)) / card.products,
    shared: sum(
      rows.filter((r) => r.space === 's'),
      (r) => r.done,
    ),
  };
  const device = rows.filter((r) => r.space === 'g');
  const sectors = sum(device, (r) => r.done);
  return {
    groups,
    // Of the warps that a multiprocessor holds; fewer where there are not as many groups.
    warps: Math.min(together, Math.ceil(groups / card.multiprocessors)) * warps,
    mostWarps: card.warps,
    // Groups over all that the multiprocessors do at a time, rounded up, are what is paid for.
    filled: groups / (Math.ceil(groups / card.multiprocessors) * card.multiprocessors),
    clocks,
    bound: Math.max(...Object.values(clocks)),
    // Instructions of a warp, one after another, over all turns: what no number of warps shortens.
    serial: (sum(rows, (r) => r.warps) / warps) * Math.ceil(groups / (Math.max(1, together) * card.multiprocessors)),
    // If no cache had any of it.
    memory: (sectors * 32) / card.memory,
    bytes: sectors * 32,
    used: sectors === 0 ? 1 : sum(device, (r) => r.least) / sectors,
    narrow:
      sectors === 0
        ? 0
        : sum(
            device.filter((r) => r.bytes <= 4),
            (r) => r.done,
          ) / sectors,
    conflicts:
      sum(
        rows.filter((r) => r.space === 's'),
        (r) => r.least,
      ) / Math.max(1, clocks.shared),
  };
}

/** The estimate in a line: the share of the clocks of the slowest part that each takes, and what memory does. */
export function told(e) {
  const share = (x) => `${Math.round(100 * x)} %`;
  const parts = Object.entries(e.clocks).filter(([, clocks]) => clocks > 0);
  return [
    `${e.groups} groups (${share(e.filled)} of turns filled), ${e.warps} of ${e.mostWarps} warps, ${Math.round(e.serial)} instructions`,
    `${parts.map(([name, clocks]) => `${name} ${share(clocks / e.bound)}`).join(', ')}, memory uncached ${share(e.memory / e.bound)}`,
    `shared ${share(e.conflicts)} of turns needed`,
    `device ${share(e.used)} of sectors used, ${share(e.narrow)} by 4 bytes or fewer`,
  ].join('; ');
}
