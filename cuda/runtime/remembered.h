/* remembered.h - the last results of a function, so that consecutive calls with the same
 * arguments compute them once.
 */
#ifndef PS_CUDA_RUNTIME_REMEMBERED_H
#define PS_CUDA_RUNTIME_REMEMBERED_H

#include <cstring>
#include <type_traits>

namespace pysolvers::runtime {

/* The values of the last COUNT different keys. Keys are compared byte by byte. Objects
 * are thread_local, so that they need no lock. */
template <typename Key, typename Value, int COUNT> class Remembered {
    static_assert(std::has_unique_object_representations_v<Key>, "a key has no padding");

  public:
    /* The value of a key; null if it is not known. Valid until the next add(). */
    const Value *find(const Key &key) const
    {
        for (int k = 0; k < count_; k++) {
            if (memcmp(&keys_[k], &key, sizeof key) == 0) {
                return &values_[k];
            }
        }
        return nullptr;
    }

    /* Add a key that is not known, in place of the oldest one. */
    const Value *add(const Key &key, const Value &value)
    {
        const int k = next_;

        keys_[k] = key;
        values_[k] = value;
        next_ = (k + 1) % COUNT;
        count_ = count_ < COUNT ? count_ + 1 : COUNT;
        return &values_[k];
    }

  private:
    Key keys_[COUNT];
    Value values_[COUNT];
    int count_ = 0, next_ = 0;
};

} // namespace pysolvers::runtime

#endif
