/**
 * What modules of PyTorch and models of Keras have, and what to write here. Reading one of these names throws (module.ts puts them on the class), in Node and
 * in pages while they are developed.
 */

export const otherNames: Readonly<Record<string, string>> = {
  'state_dict get_weights': 'stateDict()',
  'load_state_dict set_weights': 'loadStateDict(state)',
  'named_parameters trainable_weights trainableWeights trainable_variables': 'namedParameters()',
  'named_modules modules children named_children': 'namedModules()',
  'named_buffers buffers': 'namedBuffers()',
  zero_grad: 'zeroGrad(), though step() of an optimizer clears what it has used',
  'requires_grad_ trainable': 'freeze(), and freeze(false)',
  'count_params countParams': 'parameterCount()',
  summary: 'summary(model, shape), a function',
  'to cuda cpu': "await setEngine('cuda') before the model is made",
  'half bfloat16 double float': 'the option dtype of layers, or fit with precision',
  'register_buffer registerBuffer': 'this.name = buffer(value)',
  'register_parameter registerParameter': 'this.name = parameter(value)',
  'register_forward_hook register_forward_pre_hook': 'forwardHook(layer, hook) or forwardPreHook(layer, hook)',
  'call __call__ predict': 'forward(x), after eval()',
  'fit evaluate': 'fit(model, data, options) and evaluate(model, data, options), functions',
  'save save_weights saveWeights load_weights loadWeights':
    'await saveModel(path, model) and await loadModel(path, model)',
};
