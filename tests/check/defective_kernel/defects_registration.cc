// Defects of what is registered.
#include <stdexcept>

#include "defects.h"

DEFECTS(registration) = {
    {"KN-004", [](Tables& tables) { tables.register_all = [] {}; }},
    {"KN-005",
     [](Tables& tables) { tables.register_all = [] { throw std::runtime_error("no kernels"); }; }},
    {"KN-007",
     [](Tables& tables) {
       tables.register_all = [] {
         original.register_all();
         Status status;
         TF_KernelBuilder* builder = TF_NewKernelBuilder("Neg", "CPU", nullptr, nullptr, nullptr);
         TF_RegisterKernelBuilder("Neg", builder, status.get());
       };
     }},
    {"KN-012",
     [](Tables& tables) {
       tables.register_all = [] {
         original.register_all();
         register_kernel("DefectUnknown", nullptr, 0);
       };
     }},
    {"KN-013",
     [](Tables& tables) {
       tables.register_all = [] {
         original.register_all();
         register_kernel("Relu6", "U", TF_FLOAT);
       };
     }},
    {"KN-014",
     [](Tables& tables) {
       tables.register_all = [] {
         original.register_all();
         register_kernel("Relu6", "T", TF_FLOAT, "nothing");
       };
     }},
    {"KN-015",
     [](Tables& tables) {
       tables.register_all = [] {
         original.register_all();
         register_kernel("Relu", "T", TF_FLOAT);
       };
     }},
    {"KN-016",
     [](Tables& tables) {
       tables.register_all = [] {
         original.register_all();
         Status status;
         TF_KernelBuilder* builder = TF_NewKernelBuilder("Relu6", "CPU", original.create,
                                                         original.compute, original.destroy);
         TF_KernelBuilder_TypeConstraint(builder, "T", TF_FLOAT, status.get());
         TF_KernelBuilder_TypeConstraint(builder, "T", TF_DOUBLE, status.get());
         TF_RegisterKernelBuilder("Relu6", builder, status.get());
       };
     }},
    {"KN-017",
     [](Tables& tables) {
       tables.register_all = [] {
         original.register_all();
         register_kernel("Relu6", "T", 99);
       };
     }},
    {"KN-020",
     [](Tables& tables) {
       tables.register_all = [] {
         original.register_all();
         register_kernel("Relu6", "T", TF_COMPLEX64);
       };
     }},
    {"KN-022",
     [](Tables& tables) {
       tables.register_all = [] {
         original.register_all();
         define_op("DefectMalformed", "factor: number");
       };
     }},
    {"KN-023",
     [](Tables& tables) {
       tables.register_all = [] {
         original.register_all();
         define_op("DefectScale", "factor: int = 2");
       };
     }},
};
