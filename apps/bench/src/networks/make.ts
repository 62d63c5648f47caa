/** The network of a specification, with the numbers that all participants have. */
import type { NetworkSpec } from '../work/networks.ts';
import { actorCritic, mlp, pinn, vae } from './dense.ts';
import { cnn, resnet18, unet } from './images.ts';
import { type Network, withParameters } from './network.ts';
import { gpt, lstm } from './sequences.ts';

function bare(spec: NetworkSpec): Network {
  switch (spec.network) {
    case 'mlp':
      return mlp(spec);
    case 'cnn':
      return cnn();
    case 'resnet18':
      return resnet18(spec);
    case 'gpt':
      return gpt(spec);
    case 'lstm':
      return lstm(spec);
    case 'vae':
      return vae(spec);
    case 'unet':
      return unet(spec);
    case 'pinn':
      return pinn(spec);
    case 'actor-critic':
      return actorCritic(spec);
  }
  return spec satisfies never;
}

export function makeNetwork(spec: NetworkSpec): Network {
  return withParameters(bare(spec));
}
