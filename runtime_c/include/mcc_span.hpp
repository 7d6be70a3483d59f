/* mcc_span.hpp - what C++ programs get tensors as: a pointer whose type says how many elements there are. From C++11 on,
 * without the standard library.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MCC_SPAN_HPP
#define MCC_SPAN_HPP

#include <stddef.h>
#include <stdint.h>

/* Of a span whose size is known at run time only. */
constexpr size_t mcc_any_size = ~static_cast<size_t>(0);

/* N elements, which lie somewhere else. */
template <class T, size_t N = mcc_any_size>
class mcc_span {
public:
    explicit constexpr mcc_span(T *data) noexcept : data_(data) {}
    constexpr T *data() const noexcept { return data_; }
    static constexpr size_t size() noexcept { return N; }
    static constexpr size_t size_bytes() noexcept { return N * sizeof(T); }
    constexpr T &operator[](size_t i) const noexcept { return data_[i]; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + N; }

private:
    T *data_;
};

template <class T>
class mcc_span<T, mcc_any_size> {
public:
    constexpr mcc_span() noexcept : data_(nullptr), size_(0) {}
    constexpr mcc_span(T *data, size_t size) noexcept : data_(data), size_(size) {}
    template <size_t N>
    constexpr mcc_span(T (&array)[N]) noexcept : data_(array), size_(N) {}
    template <class U, size_t N>
    constexpr mcc_span(mcc_span<U, N> other) noexcept : data_(other.data()), size_(other.size()) {}
    constexpr T *data() const noexcept { return data_; }
    constexpr size_t size() const noexcept { return size_; }
    constexpr size_t size_bytes() const noexcept { return size_ * sizeof(T); }
    constexpr T &operator[](size_t i) const noexcept { return data_[i]; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + size_; }

private:
    T *data_;
    size_t size_;
};

/* What is read of a constant output where there is no blob. */
template <class T, size_t N>
struct mcc_zeros {
    static const T all[N];
};
template <class T, size_t N>
const T mcc_zeros<T, N>::all[N] = {};

#endif /* MCC_SPAN_HPP */
