/** What stands in cells of docs/operations.md that the suite cannot fill, by operation and column; `all`: in every empty one. */

const created = { orders: 'none: no input', goldens: 'a definition' };
const random = {
  dtypes: 'see the suite "random"',
  orders: 'none: no input',
  kernels: '1 / -',
  goldens: 'own generator',
  cases: 'suite "random"',
  engines: 'reference, cpu',
};
const torchLacks = { goldens: 'PyTorch 1.13 has none' };
const flat = { orders: '0 everywhere' };

const sized = { kernels: 'waits for the size' };

export const notes = {
  zeros: created,
  ones: created,
  empty: created,
  full: created,
  eye: created,
  tri: created,
  arange: created,
  linspace: created,
  tensor: created,
  onesLike: created,
  zerosLike: created,
  fullLike: created,
  contiguous: { goldens: 'a copy' },
  at: { goldens: 'as slice' },
  rand: random,
  randn: random,
  randint: random,
  bernoulli: random,
  permutation: random,
  dropout: { ...random, orders: 'as mul by its mask' },
  locallyConnectedConv2d: torchLacks,
  graphConv: torchLacks,
  polygamma: { goldens: 'formula to any order' },
  cast: { orders: '1: the cast back' },
  floorDivide: flat,
  heaviside: flat,
  rbfKernel: torchLacks,
  rotaryEmbedding: torchLacks,
  nonZero: { ...sized, orders: 'none: indices out' },
  maskedSelect: { ...sized, orders: 'as gather' },
  unique: { ...sized, orders: 'as gather' },
  oneHot: { orders: 'none: indices in' },
};
