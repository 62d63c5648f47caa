/** All programs by name. */
import { charGpt } from './char-gpt.ts';
import { dcgan } from './dcgan.ts';
import { dqn } from './dqn.ts';
import { lstmLengths } from './lstm-lengths.ts';
import { neuralStyle } from './neural-style.ts';
import { pinn } from './pinn.ts';
import { reinforce } from './reinforce.ts';
import { resnet } from './resnet.ts';
import { seq2seq } from './seq2seq.ts';
import { tabular } from './tabular.ts';
import type { Result } from './train.ts';
import { unet } from './unet.ts';
import { vae } from './vae.ts';

export const programs: Readonly<Record<string, (steps?: number) => Promise<Result>>> = {
  'char-gpt': charGpt,
  dcgan,
  dqn,
  'lstm-lengths': lstmLengths,
  'neural-style': neuralStyle,
  pinn,
  reinforce,
  resnet,
  seq2seq,
  tabular,
  unet,
  vae,
};
