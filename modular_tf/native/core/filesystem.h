#ifndef MODULAR_TF_CORE_FILESYSTEM_H_
#define MODULAR_TF_CORE_FILESYSTEM_H_

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __cplusplus
}
#endif
#endif
