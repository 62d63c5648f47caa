/** Weights as safetensors files, with the list of layers in the file's metadata. */
import { DataError, decodeSafetensors, encodeSafetensors } from '@polygrad/data';
import { hostState, type StateDict, type StateValues } from '@polygrad/nn';
import { type LayerSpec, parseLayers, planNetwork, printLayers } from '../common/layers.ts';

const LAYERS_KEY = 'playground.layers';

export async function encodeWeights(state: StateDict, layers: readonly LayerSpec[]): Promise<Uint8Array> {
  return encodeSafetensors(await hostState(state), { format: 'pt', [LAYERS_KEY]: printLayers(layers) });
}

/**
 * @param name what to call the file in errors
 * @returns the arrays, and the layers if the file says which; files of other programs do not
 * @throws DataError for damaged files and weights that are NaN or infinite, LayerError for layers that cannot be built
 */
export function decodeWeights(bytes: Uint8Array, name: string): { weights: StateValues; layers: LayerSpec[] | null } {
  const { tensors, metadata } = decodeSafetensors(bytes, name);
  for (const [key, { data }] of tensors) {
    const at = data instanceof Float32Array ? data.findIndex((x) => !Number.isFinite(x)) : -1;
    if (at >= 0)
      throw new DataError(
        'format',
        name,
        `${name}: '${key}' holds ${data[at]} at ${at}; choose weights that are finite numbers`,
      );
  }
  const text = metadata[LAYERS_KEY];
  if (text === undefined) return { weights: tensors, layers: null };
  const layers = parseLayers(text);
  planNetwork(layers);
  return { weights: tensors, layers };
}
