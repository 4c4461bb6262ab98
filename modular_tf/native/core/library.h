#ifndef MODULAR_TF_CORE_LIBRARY_H_
#define MODULAR_TF_CORE_LIBRARY_H_

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __cplusplus
}
#endif
#endif
