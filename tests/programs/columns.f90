! columns.f90 - diffusion in the columns of an ocean model, in Fortran: depth is the last index.
program columns
  use, intrinsic :: iso_c_binding
  use pysolvers
  implicit none
  integer, parameter :: nx = 6, ny = 4, nz = 30
  real(c_double), target :: lower(nx, ny, nz), diag(nx, ny, nz), upper(nx, ny, nz)
  real(c_double), target :: rhs(nx, ny, nz), x(nx, ny, nz)
  real(c_double) :: lines(nz, nx), left(nz, nx), rest
  type(pysolvers_systems) :: systems
  integer :: i, j, k, status

  do concurrent (i = 1:nx, j = 1:ny, k = 1:nz)
    lower(i, j, k) = -1 - 0.1d0 * i
    upper(i, j, k) = -1 - 0.1d0 * j
    diag(i, j, k) = 4 + 0.01d0 * k
    rhs(i, j, k) = sin(dble(i + 2 * j + 3 * k))
  end do
  systems%rows = nz
  systems%outer = ny
  systems%inner = nx
  systems%lower = input(lower)
  systems%diag = input(diag)
  systems%upper = input(upper)
  systems%rhs = input(rhs)
  systems%x = pysolvers_output(c_loc(x), nx * ny, nx, 1)
  status = pysolvers_solve(systems)
  rest = 0
  do k = 1, nz
    rest = max(rest, maxval(abs(diag(:, :, k) * x(:, :, k) - rhs(:, :, k) &
      + merge(lower(:, :, k) * x(:, :, max(k - 1, 1)), 0d0, k > 1) &
      + merge(upper(:, :, k) * x(:, :, min(k + 1, nz)), 0d0, k < nz))))
  end do
  print '(a, i0, a, es9.2)', "status ", status, ", residual ", rest

  ! Depth first: the systems lie one after the other.
  do k = 1, nz
    lines(k, :) = rhs(:, 1, k)
  end do
  left = lines
  status = pysolvers_dsolve(int(nz, c_int64_t), int(nx, c_int64_t), &
    transpose(lower(:, 1, :)), transpose(diag(:, 1, :)), transpose(upper(:, 1, :)), lines, left)
  print '(a, i0, a, es9.2)', "status ", status, ", difference ", &
    maxval(abs(transpose(left) - x(:, 1, :)))
  print '(a)', pysolvers_status_text(pysolvers_bad_layout)

contains

  type(pysolvers_input) function input(a)
    real(c_double), target, intent(in) :: a(nx, ny, nz)

    input = pysolvers_input(c_loc(a), nx * ny, nx, 1)
  end function
end program
