/** Training steps of networks that people train, each beside the same network elsewhere; and how much memory ResNet-18 takes. */
import type { Suite } from '../harness/suite.ts';
import { leastBytes } from '../networks/resnet-memory.ts';
import type { BenchCase } from '../work/cases.ts';
import type { NetworkSpec } from '../work/networks.ts';

function networkCase(id: string, spec: NetworkSpec, batch: number, length = 1): BenchCase {
  const least = spec.network === 'resnet18' ? { leastBytes: leastBytes(spec, batch) } : {};
  return { id, work: { kind: 'network', spec, batch, length }, ...least };
}

/** The dear ones first: what is measured last is what may be left out when time is over. */
const full: readonly BenchCase[] = [
  networkCase('resnet18', { network: 'resnet18', width: 64, side: 32 }, 16),
  networkCase('gpt-4x256', { network: 'gpt', layers: 4, width: 256, heads: 4, vocabulary: 256, places: 128 }, 8, 128),
  networkCase('unet', { network: 'unet', width: 16, side: 64 }, 4),
  networkCase('mlp', { network: 'mlp', inputs: 784, hidden: 128, outputs: 10 }, 128),
  networkCase('mnist-cnn', { network: 'cnn' }, 64),
  networkCase('vae', { network: 'vae', hidden: 400, latent: 20 }, 128),
  networkCase('lstm', { network: 'lstm', inputs: 32, hidden: 128, outputs: 10 }, 32, 32),
  networkCase('pinn', { network: 'pinn', width: 32, layers: 4 }, 1024),
];

/** All networks, made small: that they work, and no figures to compare. */
const quick: readonly BenchCase[] = [
  networkCase('mlp', { network: 'mlp', inputs: 784, hidden: 32, outputs: 10 }, 16),
  networkCase('mnist-cnn', { network: 'cnn' }, 4),
  networkCase('vae', { network: 'vae', hidden: 32, latent: 4 }, 8),
  networkCase('lstm', { network: 'lstm', inputs: 8, hidden: 16, outputs: 10 }, 4, 4),
  networkCase('pinn', { network: 'pinn', width: 8, layers: 2 }, 16),
  networkCase('unet', { network: 'unet', width: 4, side: 16 }, 2),
  networkCase('gpt', { network: 'gpt', layers: 1, width: 16, heads: 2, vocabulary: 32, places: 16 }, 2, 8),
  networkCase('resnet18-narrow', { network: 'resnet18', width: 4, side: 8 }, 2),
];

export const networks: Suite = {
  name: 'networks',
  title: 'Training steps of networks, forward, backward and Adam, ms; lower is better',
  peers: ['tfjs-wasm', 'torch', 'cpu-engine'],
  bounded: true,
  cases: (small) => (small ? quick : full),
  goals: () => [],
};
