/** A page that trains a convolutional network on WebGPU or the CPU engine, and loads only the engine that it runs on. */
import '@polygrad/backend-cpu/late';
import '@polygrad/backend-webgpu';

export { train } from './cnn-step.mjs';
