import { createNativeEngine, nativeProvider } from '@polygrad/backend-native';
let t=performance.now(), c=process.cpuUsage(); await nativeProvider.probe();let d=process.cpuUsage(c); console.log(performance.now()-t, (d.user+d.system)/1e3);
t=performance.now(); c=process.cpuUsage();const e=createNativeEngine({isa:'x64-v3'}); d=process.cpuUsage(c); console.log(e.device, performance.now()-t,  (d.user+d.system)/1e3);
